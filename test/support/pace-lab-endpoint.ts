import type { PaceController } from '../../src/core/pace.ts'
import type { PaceMetrics } from '../../src/core/pace-signals.ts'
import { StartOrder } from '../../src/core/start-order.ts'
import type { Sequence } from '../../src/simulator/sequence.ts'
import type { LabServer } from './pace-lab-server.ts'

/** A stream that is silent for longer has stalled, as the real client counts it. */
const STALL = 2000

export interface EndpointOptions {
  controller: PaceController | undefined
  /** Requests that may be open where no controller says so. */
  fixed: number
  /** Seconds that a reply of /metrics is old when it is used; infinite for no such reply. */
  metricsAge: number
  /** What the metrics make of the truth. */
  /** Answers come whole. */
  unstreamed?: boolean
  told: ((truth: PaceMetrics) => PaceMetrics) | undefined
}

/** One server as a client sees it. */
export class LabEndpoint {
  readonly server: LabServer
  readonly controller: PaceController | undefined
  open = 0
  readonly starts = new StartOrder()
  /** Requests that hang: they take no place. */
  hung = 0
  /** No request is sent before this moment. */
  notBefore = 0
  /** Requests that are open at the server, in the order of their arrival. */
  readonly opened = new Set<Sequence>()
  /** Tokens delivered so far. */
  tokens = 0
  #finished = 0
  /** Tokens of answers that were broken off: delivered, and of no use. */
  #lost = 0
  #options: EndpointOptions
  #metrics: PaceMetrics[] = []
  #produced = new Map<Sequence, { tokens: number; at: number; told: boolean }>()

  constructor(server: LabServer, options: EndpointOptions) {
    this.server = server
    this.controller = options.controller
    this.#options = options
  }

  get limit(): number {
    return this.controller === undefined ? this.#options.fixed : this.controller.limit + this.hung
  }

  close(sequence: Sequence): void {
    this.open--
    this.opened.delete(sequence)
    this.#produced.delete(sequence)
    if (sequence.state === 'finished') this.#finished += sequence.outputTokens
    else this.#lost += sequence.produced
  }

  /** Requests that arrived before a moment and have no first token. */
  late(before: number): Sequence[] {
    const late: Sequence[] = []
    if (this.starts.size === 0) return late
    for (const sequence of this.opened) {
      if (sequence.arrivedAt >= before) break
      if (sequence.firstTokenAt === undefined) late.push(sequence)
    }
    return late
  }

  /**
   * What happens every second.
   * @returns how the limit moved
   */
  second(now: number, exhausted: boolean): string | undefined {
    this.#count(now)
    const { controller } = this
    if (controller === undefined) return undefined
    const { limit } = controller
    this.hung = this.starts.hung(this.open)
    const view = {
      now,
      open: this.open - this.hung,
      unstarted: this.#options.unstreamed ? 0 : this.starts.size - this.hung,
      unstreamed: this.#options.unstreamed ? this.open : 0,
      metrics: this.#metrics.at(-this.#options.metricsAge),
      tokens: this.#options.unstreamed ? undefined : this.tokens + this.#lost,
      exhausted,
    }
    const { waiting, kvCacheUsage, preemptions } = this.server.scheduler
    const truth = { waiting, kvUse: kvCacheUsage, preemptions }
    this.#metrics.push(this.#options.told?.(truth) ?? truth)
    controller.second(view)
    if (controller.limit === limit) return undefined
    const { open, unstarted } = view
    const seconds = String(now / 1000).padStart(6)
    return `${seconds}: ${limit} -> ${controller.limit}, ${controller.reason}, open ${open}, unstarted ${unstarted}`
  }

  #count(now: number): void {
    let tokens = this.#finished
    let stalled = 0
    let going = false
    for (const sequence of this.opened) {
      tokens += sequence.produced
      if (this.controller === undefined || sequence.produced === 0) continue
      const before = this.#produced.get(sequence)
      if (before === undefined || before.tokens !== sequence.produced) {
        this.#produced.set(sequence, { tokens: sequence.produced, at: now, told: false })
        going = true
      } else if (now - before.at > STALL && !before.told) {
        before.told = true
        stalled++
      }
    }
    // As the real client does: streams that stand still all at once were not preempted.
    if (going) for (; stalled > 0; stalled--) this.controller?.stalled()
    this.tokens = tokens
  }
}
