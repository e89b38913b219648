export interface SequenceSpec {
  readonly promptTokens: number
  readonly outputTokens: number
  /** Lower runs first; 0 unless given. */
  readonly priority?: number
  /** Kept for whoever counts finished sequences; means nothing to the scheduler. */
  readonly finishReason?: string
}

/** One answer being made. Written by the scheduler, read by everybody else. */
export class Sequence {
  readonly promptTokens: number
  readonly outputTokens: number
  readonly priority: number
  readonly finishReason: string
  readonly order: number
  readonly arrivedAt: number
  state: 'waiting' | 'running' | 'finished' | 'aborted' = 'waiting'
  /** Output tokens that exist so far. */
  produced = 0
  /** Tokens whose keys and values are in the cache. */
  computed = 0
  /** Tokens the step in progress computes for this sequence. */
  chunk = 0
  scheduledAt: number | undefined = undefined
  firstTokenAt: number | undefined = undefined
  finishedAt: number | undefined = undefined

  constructor(spec: SequenceSpec, order: number, arrivedAt: number) {
    this.promptTokens = spec.promptTokens
    this.outputTokens = spec.outputTokens
    this.priority = spec.priority ?? 0
    this.finishReason = spec.finishReason ?? 'stop'
    this.order = order
    this.arrivedAt = arrivedAt
  }

  /**
   * Known tokens not computed yet: the prompt at first, the prompt and everything produced after a
   * preemption, and 1 while decoding (the token sampled last). A decode is a prefill of one token.
   */
  get left(): number {
    return this.promptTokens + this.produced - this.computed
  }
}
