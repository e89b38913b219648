import type { Clock } from '../../core/clock.ts'
import { PaceController } from '../../core/pace.ts'
import type { PaceView } from '../../core/pace-signals.ts'
import { foreignModel, parseServerLoad, type ServerLoad } from '../../net/server-metrics.ts'
import type { PooledEndpoint } from './endpoint-pool.ts'

const SECOND = 1000
/** Metrics that are older (ms) are worse than none: they cost timeouts. */
const FRESH = 4000
/** Where they are older for so long (ms), the pace is found without them as long as they are. */
const LATE = 30_000
/** So many useless replies in a row, and /metrics is not asked again. */
const MOST_USELESS = 3
/** A queue that is told so many seconds in a row is looked at, if so many were answered meanwhile. */
const DOUBTED_AFTER = 20
const ANSWERED_MEANWHILE = 10
/** First tokens that come so many times sooner than the queue lets them: it is not the queue of ours. */
const TOO_SOON = 10

export interface PacerOptions {
  clock: Clock
  max: number
  /** What is asked for, once it is known. */
  model: () => string | undefined
  /** Whether any request waits for its turn here. */
  waiting: () => boolean
  /** The limit may have grown. */
  onChange: () => void
  /** Said once for a server whose /metrics are of no use. */
  onUselessMetrics: (endpoint: PooledEndpoint, why: string) => void
}

/** Steers the number of open requests of one server (`--concurrency auto`). */
export class Pacer {
  readonly controller: PaceController
  #endpoint: PooledEndpoint
  #options: PacerOptions
  #load: { at: number; load: ServerLoad } | undefined
  #asking = false
  #useless = 0
  /** When they were fresh last, or since when they are waited for. */
  #freshAt: number | undefined
  #saidLate = false
  /** Seconds in a row in which a queue was told. */
  #queued = 0
  /** Answers before the first of these, and preemptions that the server had counted. */
  #answeredBefore = 0
  #preemptedBefore = 0
  #stop: () => void

  constructor(endpoint: PooledEndpoint, options: PacerOptions) {
    this.#endpoint = endpoint
    this.#options = options
    this.controller = new PaceController(options.max)
    endpoint.limit = this.controller.limit
    this.#stop = options.clock.every(SECOND, () => this.#second())
  }

  /** Requests that wait in the server's queue, as its /metrics tell; undefined without fresh ones. */
  get waitingThere(): number | undefined {
    if (this.#load === undefined || this.#options.clock.now() - this.#load.at > FRESH)
      return undefined
    return this.#load.load.waiting
  }

  stop(): void {
    this.#stop()
  }

  #second(): void {
    const endpoint = this.#endpoint
    if (endpoint.resting) {
      // A server that is down has no metrics; they are asked for anew when it is back.
      if (Number.isFinite(this.#useless)) this.#useless = 0
      this.#load = undefined
      this.#freshAt = undefined
      return
    }
    void this.#ask()
    // Requests that hang are no queue, and take no place.
    const hung = endpoint.starts.hung(endpoint.inUse)
    this.controller.second(this.#view(hung))
    endpoint.limit = Math.min(this.#options.max, this.controller.limit + hung)
    this.#options.onChange()
  }

  #view(hung: number): PaceView {
    const { clock, waiting } = this.#options
    const { inUse, starts, unstreamed, delivered } = this.#endpoint
    return {
      now: clock.now(),
      open: inUse - hung,
      unstarted: starts.size - hung,
      unstreamed,
      metrics: this.#metrics(),
      // Of unfinished answers too: those that are finished say nothing of the rate under long tails.
      tokens: unstreamed > 0 ? undefined : delivered,
      exhausted: !waiting(),
    }
  }

  #metrics(): PaceView['metrics'] {
    if (this.#load === undefined || this.#useless >= MOST_USELESS) return undefined
    const now = this.#options.clock.now()
    if (now - this.#load.at > FRESH) return this.#isLate(now) ? undefined : 'stale'
    this.#freshAt = now
    const { running, waiting, kvUse, preemptions } = this.#load.load
    const { inUse, starts } = this.#endpoint
    // Behind a balancer /metrics show one replica of several: less than what we alone have open.
    if (running + waiting < 0.5 * (inUse - starts.size)) return undefined
    if (this.#isUnlikely(this.#load.load)) return undefined
    return { waiting, kvUse, preemptions }
  }

  /** Whether they have come too late for so long that they are not waited for any more. */
  #isLate(now: number): boolean {
    this.#freshAt ??= now
    if (now - this.#freshAt < LATE) return false
    if (!this.#saidLate) {
      this.#saidLate = true
      const age = Math.round((now - this.#load!.at) / SECOND)
      this.#options.onUselessMetrics(this.#endpoint, `answers too late (after ${age} s)`)
    }
    return true
  }

  /**
   * Whether our requests cannot be waiting in the queue that is told. By Little's law a place in it
   * takes as long as a request does, for each place of those that run. Where requests are preempted
   * those wait too that have had their first token.
   */
  #isUnlikely({ running, waiting, preemptions = 0 }: ServerLoad): boolean {
    const { inUse, counts, firstTokens } = this.#endpoint
    if (waiting === 0) this.#queued = 0
    else if (++this.#queued === 1) {
      this.#answeredBefore = counts.answered
      this.#preemptedBefore = preemptions
    }
    const answered = counts.answered - this.#answeredBefore
    if (this.#queued < DOUBTED_AFTER || answered < ANSWERED_MEANWHILE) return false
    const latency = (this.#queued * SECOND * inUse) / answered
    const wait = (waiting / Math.max(1, running)) * latency
    this.#queued = 0
    if (preemptions > this.#preemptedBefore) return false
    if (wait < TOO_SOON * (firstTokens.present ?? wait)) return false
    this.#useless = Number.POSITIVE_INFINITY
    const why = `tells of ${waiting} waiting requests, among which ours are not`
    this.#options.onUselessMetrics(this.#endpoint, why)
    this.controller.restart()
    return true
  }

  async #ask(): Promise<void> {
    if (this.#asking || this.#useless >= MOST_USELESS) return
    this.#asking = true
    const at = this.#options.clock.now()
    const text = await this.#endpoint.server.metrics()
    this.#asking = false
    if (this.#useless >= MOST_USELESS) return
    const model = this.#options.model()
    if (text !== undefined && model !== undefined && this.#isForeign(text, model)) return
    const load = text === undefined ? undefined : parseServerLoad(text, model)
    if (load !== undefined) {
      this.#useless = 0
      this.#load = { at, load }
      return
    }
    if (++this.#useless < MOST_USELESS) return
    const why = text === undefined ? 'gives no metrics' : 'does not tell how many requests wait'
    this.#options.onUselessMetrics(this.#endpoint, why)
  }
  /** Whether the metrics are those of another model, as in front of several servers; said once. */
  #isForeign(text: string, model: string): boolean {
    const other = foreignModel(text, model)
    if (other === undefined) return false
    this.#useless = Number.POSITIVE_INFINITY
    if (this.#load !== undefined) this.controller.restart()
    this.#options.onUselessMetrics(this.#endpoint, `tells of the model '${other}', not '${model}'`)
    return true
  }
}
