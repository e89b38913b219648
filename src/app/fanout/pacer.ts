import type { Clock } from '../../core/clock.ts'
import { PaceController } from '../../core/pace.ts'
import type { PaceView } from '../../core/pace-signals.ts'
import { parseServerLoad, type ServerLoad } from '../../net/server-metrics.ts'
import type { PooledEndpoint } from './endpoint-pool.ts'

const SECOND = 1000
/** Metrics that are older (ms) are worse than none: they cost timeouts. */
const FRESH = 4000
/** So many useless replies in a row, and /metrics is not asked again. */
const MOST_USELESS = 3

export interface PacerOptions {
  clock: Clock
  max: number
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
    void this.#ask()
    if (this.#endpoint.resting) return
    this.controller.second(this.#view())
    this.#endpoint.limit = this.controller.limit
    this.#options.onChange()
  }

  #view(): PaceView {
    const { clock, waiting } = this.#options
    const { inUse, unstarted, delivered } = this.#endpoint
    return {
      now: clock.now(),
      open: inUse,
      unstarted,
      metrics: this.#metrics(),
      // Of unfinished answers too: those that are finished say nothing of the rate under long tails.
      tokens: delivered,
      exhausted: !waiting(),
    }
  }

  #metrics(): PaceView['metrics'] {
    if (this.#load === undefined || this.#useless >= MOST_USELESS) return undefined
    if (this.#options.clock.now() - this.#load.at > FRESH) return 'stale'
    const { running, waiting, kvUse, preemptions } = this.#load.load
    const { inUse, unstarted } = this.#endpoint
    // Behind a balancer /metrics show one replica of several: less than what we alone have open.
    if (running + waiting < 0.5 * (inUse - unstarted)) return undefined
    return { waiting, kvUse, preemptions }
  }

  async #ask(): Promise<void> {
    if (this.#asking || this.#useless >= MOST_USELESS) return
    this.#asking = true
    const at = this.#options.clock.now()
    const text = await this.#endpoint.server.metrics()
    this.#asking = false
    const load = text === undefined ? undefined : parseServerLoad(text)
    if (load !== undefined) {
      this.#useless = 0
      this.#load = { at, load }
      return
    }
    if (++this.#useless < MOST_USELESS) return
    const why = text === undefined ? 'gives no metrics' : 'does not tell how many requests wait'
    this.#options.onUselessMetrics(this.#endpoint, why)
  }
}
