import { normal } from '../../src/simulator/random.ts'
import { Scheduler, type SchedulerEvents } from '../../src/simulator/scheduler.ts'
import type { Sequence, SequenceSpec } from '../../src/simulator/sequence.ts'

const SECOND = 1000
const MINUTE = 60_000
/** Standard deviation of the rate, and what of it is still there a second later. */
const NOISE = 0.03
const MEMORY = 0.95

/** A server of the laboratory. Rates in tokens a second, sizes in tokens. */
export interface ServerSpec {
  /** Requests that run at once: the knee. */
  slots: number
  /** Decode rate of an infinite batch, and the batch with half of it. */
  peak: number
  half: number
  prefill?: number
  kvCacheTokens?: number
  /** More requests than this, running and waiting, get 429, and more than so many in a minute. */
  refuseAbove?: number
  perMinute?: number
  /** Seconds that a 429 asks to wait; where a minute's requests are used up: the rest of it. */
  retryAfter?: number | 'rest'
  /** Whether answers tell how many requests are left in this minute. */
  rateHeaders?: boolean
  /** Beyond so many running, each one more lowers the rate of all. */
  thrashPast?: number
}

/** The virtual scheduler with a rate that wavers and the failings that servers have. */
export class LabServer {
  readonly scheduler: Scheduler
  /** Share of the slots and of the rate that is there at the moment. */
  capacity = 1
  /** Share of the rate alone. */
  speed = 1
  readonly spec: ServerSpec
  /** Requests of this minute. */
  #minute = { number: 0, requests: 0 }
  #seed: number
  #noise = 0
  #seconds = 0

  constructor(spec: ServerSpec, seed: number, events: SchedulerEvents) {
    this.spec = spec
    this.#seed = seed
    const slots = (): number => Math.ceil(spec.slots * this.capacity)
    const rate = (): number => this.#rate()
    this.scheduler = new Scheduler(
      {
        prefillTokensPerSecond: spec.prefill ?? 20_000,
        prefillChunk: 8192,
        kvCacheTokens: spec.kvCacheTokens ?? 0,
        halfBatch: spec.half,
        get maxNumSeqs() {
          return slots()
        },
        get peakTokensPerSecond() {
          return rate()
        },
      },
      events,
    )
  }

  /** @returns undefined where the server refuses it with a 429 */
  add(spec: SequenceSpec, now: number): Sequence | undefined {
    const { running, waiting } = this.scheduler
    const { refuseAbove = Number.POSITIVE_INFINITY, perMinute = Number.POSITIVE_INFINITY } =
      this.spec
    const number = Math.floor(now / MINUTE)
    if (number !== this.#minute.number) this.#minute = { number, requests: 0 }
    if (running + waiting >= refuseAbove || this.#minute.requests >= perMinute) return undefined
    this.#minute.requests++
    return this.scheduler.add(spec, now)
  }

  /** Milliseconds that a 429 asks to wait now. */
  retryAfter(now: number): number | undefined {
    const { retryAfter } = this.spec
    if (retryAfter === 'rest') return MINUTE - (now % MINUTE)
    return retryAfter === undefined ? undefined : retryAfter * SECOND
  }

  /** When a client that reads its headers sends the next request. */
  get notBefore(): number {
    const { perMinute = Number.POSITIVE_INFINITY, rateHeaders } = this.spec
    if (rateHeaders !== true || this.#minute.requests < perMinute) return 0
    return (this.#minute.number + 1) * MINUTE
  }

  advance(now: number): void {
    for (; this.#seconds * SECOND <= now; this.#seconds++) {
      const fresh = normal(this.#seed, this.#seconds) * NOISE * Math.sqrt(1 - MEMORY ** 2)
      this.#noise = MEMORY * this.#noise + fresh
    }
    this.scheduler.advance(now)
  }

  #rate(): number {
    const { peak, thrashPast = Number.POSITIVE_INFINITY } = this.spec
    const over = Math.max(0, this.scheduler.running / thrashPast - 1)
    return (peak * this.capacity * this.speed * Math.exp(this.#noise)) / (1 + 2 * over)
  }
}
