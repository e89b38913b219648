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
  onGone: () => void
}

/** Tells a sick request from a sick server, and asks a sick server again until it is back. */
export class OutageWatch {
  /** An outage is on. */
  on = false
  #options: OutageOptions
  #asking: Promise<boolean> | undefined
  #cancelled = false
  #cancelPause: (() => void) | undefined

  constructor(options: OutageOptions) {
    this.#options = options
  }

  /**
   * Asks after a request that failed: is it the server? All who ask while a question is under way
   * share its answer.
   *
   * @returns 'well' where the failure counts, 'out' where it is the outage's
   */
  async ask(): Promise<'well' | 'out'> {
    if (this.on) return 'out'
    this.#asking ??= this.#options.probe().finally(() => {
      this.#asking = undefined
    })
    const well = await this.#asking
    if (well) return 'well'
    this.begin()
    return 'out'
  }

  /** Takes the server for out, and waits for it in the background. */
  begin(): void {
    if (this.on || this.#cancelled) return
    this.on = true
    this.#options.onBegin()
    void this.#waitUntilBack()
  }

  /** Stops asking: the run ends. */
  cancel(): void {
    this.#cancelled = true
    this.#cancelPause?.()
  }

  async #waitUntilBack(): Promise<void> {
    const { clock, maxOutage, probe, onEnd, onGone } = this.#options
    const began = clock.now()
    for (let pause = FIRST_PAUSE; !this.#cancelled; pause = Math.min(pause * 2, LONGEST_PAUSE)) {
      const left = maxOutage - (clock.now() - began)
      if (left <= 0) return onGone()
      await this.#pause(Math.min(pause, left))
      if (this.#cancelled || !(await probe())) continue
      this.on = false
      return onEnd(clock.now() - began)
    }
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
