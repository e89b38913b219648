import type { Clock } from '../core/clock.ts'
import { formatDuration } from '../core/quantity.ts'
import type { Reporter } from './reporter.ts'

/** Where a run stands. */
export interface ProgressState {
  done: number
  /** Undefined while it is not known. */
  total: number | undefined
  errors: number
  retries: number
  inFlight: number
  completionTokens: number
  answered: number
  /** What holds the run up, if anything. */
  waiting: string | undefined
  /** How many requests may be open and why, where that is found by itself. */
  pace: string | undefined
}

export interface ProgressOptions {
  clock: Clock
  report: Reporter
  state: () => ProgressState
  /** A terminal that can move its cursor. */
  live: boolean
  columns: () => number
  /** Milliseconds between two lines where there is no such terminal. */
  every: number
}

/** Milliseconds of wall time between two pictures of the bar. */
const REDRAW_EVERY = 200
/** Rates are over about this many milliseconds. */
const RATE_WINDOW = 30_000
/** The numbers go before the picture where there is not room for both. */
const BAR_WIDTH = 20
const NARROWEST_BAR = 5

/** Shows how a run goes: a bar on a terminal, else a line now and then. */
export class Progress {
  #options: ProgressOptions
  #startedAt: number
  #samples: { at: number; done: number; tokens: number }[] = []
  #stops: (() => void)[] = []

  constructor(options: ProgressOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
    if (options.live) {
      const timer = setInterval(() => this.#draw(), REDRAW_EVERY)
      timer.unref()
      this.#stops.push(() => clearInterval(timer))
      options.report.setLive({ clear: () => this.#clear(), draw: () => this.#draw() })
    } else if (options.every > 0) {
      this.#stops.push(options.clock.every(options.every, () => this.show()))
    }
  }

  /** Prints the line at once (USR1, the end of a run). */
  show(): void {
    const { clock, report, state } = this.#options
    const { done, total, errors, answered, completionTokens, waiting, pace } = state()
    const elapsed = (clock.now() - this.#startedAt) / 1000
    const rate = elapsed > 0 ? done / elapsed : 0
    const mean = answered > 0 ? Math.round(completionTokens / answered) : 0
    const wait = waiting === undefined ? '' : `, waiting: ${waiting}`
    const limit = pace === undefined ? '' : `, ${pace}`
    report.line(
      `Progress: ${done}/${total ?? '?'} (${errors} errors), ${rate.toFixed(1)} req/s, ` +
        `avg completion: ${mean} tokens, elapsed: ${Math.round(elapsed)}s${wait}${limit}`,
    )
  }

  stop(): void {
    for (const stop of this.#stops) stop()
    if (!this.#options.live) return
    this.#clear()
    this.#options.report.setLive(undefined)
  }

  #clear(): void {
    this.#options.report.raw('\r\u001b[K')
  }

  #draw(): void {
    this.#options.report.raw(`\r${this.#bar()}\u001b[K`)
  }

  #bar(): string {
    const { clock, state, columns } = this.#options
    const { done, total, errors, retries, inFlight, completionTokens, waiting, pace } = state()
    const now = clock.now()
    this.#samples.push({ at: now, done, tokens: completionTokens })
    while (this.#samples.length > 2 && now - this.#samples[0]!.at > RATE_WINDOW)
      this.#samples.shift()
    const first = this.#samples[0]!
    const seconds = Math.max(0.001, (now - first.at) / 1000)
    const rate = (done - first.done) / seconds
    const eta = total && rate > 0 ? formatDuration(((total - done) / rate) * 1000) : '?'
    const text = [
      `${done}/${total ?? '?'}`,
      `${errors} failed`,
      `${retries} retried`,
      `${rate.toFixed(1)} req/s`,
      `${Math.round((completionTokens - first.tokens) / seconds)} tok/s`,
      `${inFlight} in flight`,
      waiting === undefined ? `ETA ${eta}` : `waiting: ${waiting}`,
      ...(pace === undefined ? [] : [pace]),
    ].join(', ')
    const room = Math.max(20, columns() - 1)
    const share = total ? Math.min(1, done / total) : 0
    return (picture(share, room - text.length) + text).slice(0, room)
  }
}

/** The bar in at most so many columns, its space included; none where it would tell nothing. */
function picture(share: number, room: number): string {
  const width = Math.min(BAR_WIDTH, room - 3)
  if (width < NARROWEST_BAR) return ''
  const filled = Math.round(share * width)
  return `[${'#'.repeat(filled)}${'.'.repeat(width - filled)}] `
}
