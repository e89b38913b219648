import type { Clock } from '../core/clock.ts'

/** The first pause between two questions to a server that is out, and the longest, in ms. */
const FIRST_PAUSE = 1000
const LONGEST_PAUSE = 30_000

export interface OutageOptions {
  clock: Clock
  /** Milliseconds after which a server counts as gone for good. */
  maxOutage: number
  /** Asks the server whether it is well. */
  probe: () => Promise<boolean>
  onBegin: () => void
  /** @param duration milliseconds */
  onEnd: (duration: number) => void
}

/**
 * Tells a sick request from a sick server. All who ask while a question is under way share its
 * answer, and all wait together until the server is back.
 */
export class OutageWatch {
  #options: OutageOptions
  #asking: Promise<boolean> | undefined
  #outage: Promise<boolean> | undefined
  #cancelled = false
  #cancelPause: (() => void) | undefined

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /** Whether an outage is on. */
  get on(): boolean {
    return this.#outage !== undefined
  }

  /**
   * Asks after a request that failed: is it the server? If so, waits until it is back.
   *
   * @returns 'well' where the server is well and the failure counts; 'over' after an outage; 'gone'
   *   where it did not come back in time
   */
  async ask(): Promise<'well' | 'over' | 'gone'> {
    if (this.#outage === undefined) {
      this.#asking ??= this.#options.probe().finally(() => {
        this.#asking = undefined
      })
      if (await this.#asking) return 'well'
      this.#outage ??= this.#waitUntilBack().finally(() => {
        this.#outage = undefined
      })
    }
    return (await this.#outage) ? 'over' : 'gone'
  }

  /** Stops waiting: the run ends. */
  cancel(): void {
    this.#cancelled = true
    this.#cancelPause?.()
  }

  async #waitUntilBack(): Promise<boolean> {
    const { clock, maxOutage, probe, onBegin, onEnd } = this.#options
    const began = clock.now()
    onBegin()
    for (let pause = FIRST_PAUSE; !this.#cancelled; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      const left = maxOutage - (clock.now() - began)
      if (left <= 0) return false
      await this.#pause(Math.min(pause, left))
      if (!this.#cancelled && (await probe())) {
        onEnd(clock.now() - began)
        return true
      }
    }
    return false
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.clock.after(ms, resolve)
      this.#cancelPause = () => {
        cancel()
        resolve()
      }
    })
  }
}
