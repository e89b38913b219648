export type SignalName = 'SIGINT' | 'SIGTERM' | 'SIGHUP'

/** What a shell sees of a process that such a signal ended: 128 + the signal's number. */
export const SIGNAL_EXIT: Record<SignalName, number> = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 }

/**
 * The wish of a person or a scheduler that the run ends. A filter stops reading, writes what is
 * done and its counts, and ends with the signal's exit code.
 */
export class Interrupt {
  /** The first signal that came. */
  signal: SignalName | undefined
  #callbacks: ((signal: SignalName, count: number, cause: string) => void)[] = []
  #count = 0
  #reading = new AbortController()
  #early = new Set<string>()

  /** Aborted at the first signal: no more input is to be read. */
  get reading(): AbortSignal {
    return this.#reading.signal
  }

  /** Calls back at every signal, with how many have come, and the name of the one that came. */
  onSignal(callback: (signal: SignalName, count: number, cause: string) => void): void {
    this.#callbacks.push(callback)
  }

  /** Takes another signal for TERM: schedulers warn with USR1 or USR2 before they kill. */
  termOn(signal: 'SIGUSR1' | 'SIGUSR2'): void {
    process.on(signal, () => this.raise('SIGTERM', signal))
    if (this.#early.has(signal)) this.raise('SIGTERM', signal)
  }

  /**
   * Notes a USR1 that comes before it is known what it is for: without a listener Node would open its
   * debugger for it.
   */
  noteUsr1(): void {
    process.on('SIGUSR1', () => this.#early.add('SIGUSR1'))
  }

  raise(signal: SignalName, cause: string = signal): void {
    this.signal ??= signal
    this.#count++
    for (const callback of this.#callbacks) callback(signal, this.#count, cause)
    this.#reading.abort()
  }
}
