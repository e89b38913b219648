import { normal } from '../../src/simulator/random.ts'
import { Scheduler, type SchedulerEvents } from '../../src/simulator/scheduler.ts'
import type { Sequence, SequenceSpec } from '../../src/simulator/sequence.ts'

const SECOND = 1000
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
  /** More requests than this, running and waiting, get 429. */
  refuseAbove?: number
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
  #spec: ServerSpec
  #seed: number
  #noise = 0
  #seconds = 0

  constructor(spec: ServerSpec, seed: number, events: SchedulerEvents) {
    this.#spec = spec
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
    if (running + waiting >= (this.#spec.refuseAbove ?? Number.POSITIVE_INFINITY)) return undefined
    return this.scheduler.add(spec, now)
  }

  advance(now: number): void {
    for (; this.#seconds * SECOND <= now; this.#seconds++) {
      const fresh = normal(this.#seed, this.#seconds) * NOISE * Math.sqrt(1 - MEMORY ** 2)
      this.#noise = MEMORY * this.#noise + fresh
    }
    this.scheduler.advance(now)
  }

  #rate(): number {
    const { peak, thrashPast = Number.POSITIVE_INFINITY } = this.#spec
    const over = Math.max(0, this.scheduler.running / thrashPast - 1)
    return (peak * this.capacity * this.speed * Math.exp(this.#noise)) / (1 + 2 * over)
  }
}
