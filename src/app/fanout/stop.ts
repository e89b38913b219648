import type { Context } from '../../cli/command.ts'
import type { Clock } from '../../core/clock.ts'

/**
 * How a run ends before its input does. First INT: no new requests, those in flight finish. TERM and
 * HUP: the same for `--drain` at most. Second signal: at once.
 */
export class Stop {
  /** The error that ends the run with its own exit code. */
  fatal: Error | undefined
  requested = false
  #reading = new AbortController()
  #onStop: (() => void)[] = []
  #onQuit: (() => void)[] = []
  #inFlight: (() => number)[] = []
  #cancelDrain: (() => void) | undefined
  #closed = false

  /** @param drain milliseconds that TERM and HUP leave to what is in flight */
  constructor(context: Context, clock: Clock, drain: number) {
    context.interrupt.onSignal((signal, count, cause) => {
      if (this.#closed) return
      if (count > 1) return this.quit()
      this.#request()
      const left = this.#inFlight.reduce((sum, count) => sum + count(), 0)
      if (signal === 'SIGINT') {
        context.report.error(
          `${signal}: no new requests; ${left} in flight are being finished (a second one quits at once)`,
        )
        return
      }
      context.report.error(
        `${cause}: no new requests; ${left} in flight have ${drain / 1000} s to finish`,
      )
      this.#cancelDrain = clock.after(drain, () => this.quit())
    })
  }

  /** Aborted when no more input is to be read. */
  get reading(): AbortSignal {
    return this.#reading.signal
  }

  /** Calls back when no new requests are to be made, and when those in flight are to end too. */
  watch(inFlight: () => number, onStop: () => void, onQuit: () => void): void {
    this.#inFlight.push(inFlight)
    this.#onStop.push(onStop)
    this.#onQuit.push(onQuit)
  }

  /** Ends the run with an error: what is in flight is given up. */
  end(error: Error): void {
    this.fatal ??= error
    this.#request()
    this.quit()
  }

  /** Ends the run with an error, after what is in flight. */
  endSoon(error: Error): void {
    this.fatal ??= error
    this.#request()
  }

  /** Nothing is in flight any more: what is left of the drain is not waited for. */
  close(): void {
    this.#closed = true
    this.#cancelDrain?.()
  }

  /** Gives up what is in flight. */
  quit(): void {
    this.#cancelDrain?.()
    for (const callback of this.#onQuit.splice(0)) callback()
  }

  #request(): void {
    if (this.requested) return
    this.requested = true
    this.#reading.abort()
    for (const callback of this.#onStop) callback()
  }
}
