import type { Clock } from '../core/clock.ts'
import { timeLeft } from '../core/eta.ts'
import { formatDuration } from '../core/quantity.ts'
import { barPicture } from './bar.ts'
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
  /** Pieces of text that streams have brought: in all, of open requests, of those answered. */
  pieces: { delivered: number; begun: number; answered: number }
  /** Requests that a server answered. */
  succeeded: number
  /** Milliseconds to the first token, now and at the server's best; undefined while not known. */
  firstToken: number | undefined
  firstTokenFloor: number | undefined
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

/** What stood when. */
interface Sample {
  at: number
  done: number
  tokens: number
  pieces: number
}

/** Shows how a run goes: a bar on a terminal, else a line now and then. */
export class Progress {
  #options: ProgressOptions
  #startedAt: number
  #samples: Sample[] = []
  #stops: (() => void)[] = []

  constructor(options: ProgressOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
    this.#samples.push({ at: this.#startedAt, done: 0, tokens: 0, pieces: 0 })
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
    const now = state()
    const { done, total, errors, answered, completionTokens, waiting, pace } = now
    const { eta } = this.#measure(now)
    const elapsed = (clock.now() - this.#startedAt) / 1000
    const rate = elapsed > 0 ? done / elapsed : 0
    const mean = answered > 0 ? Math.round(completionTokens / answered) : 0
    const wait = waiting === undefined ? '' : `, waiting: ${waiting}`
    const limit = pace === undefined ? '' : `, ${pace}`
    const first = firstTokenText(now)
    const more = first === undefined ? '' : `, ${first}`
    const left = eta === undefined ? '' : `, ETA: ${formatDuration(eta)}`
    report.line(
      `Progress: ${done}/${total ?? '?'} (${errors} errors), ${rate.toFixed(1)} req/s, ` +
        `avg completion: ${mean} tokens, elapsed: ${Math.round(elapsed)}s${left}${wait}${limit}${more}`,
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

  /** Rates over the last moments, and what is left by them. */
  #measure(state: ProgressState): { rate: number; tokenRate: number; eta: number | undefined } {
    const { done, total, completionTokens, pieces, inFlight, answered, succeeded } = state
    const at = this.#options.clock.now()
    const sample = { at, done, tokens: completionTokens, pieces: pieces.delivered }
    this.#samples.push(sample)
    while (this.#samples.length > 2 && at - this.#samples[0]!.at > RATE_WINDOW) {
      this.#samples.shift()
    }
    const first = this.#samples[0]!
    const seconds = at > first.at ? (at - first.at) / 1000 : Number.POSITIVE_INFINITY
    const tokenRate = (sample.tokens - first.tokens) / seconds
    // Without streams nothing is known of an answer before it is there.
    const streams = pieces.answered > 0
    const eta =
      total === undefined
        ? undefined
        : timeLeft({
            unfinished: Math.max(0, total - done),
            open: inFlight,
            mean: streams ? pieces.answered / succeeded : completionTokens / answered,
            got: streams ? pieces.begun : 0,
            rate: streams ? (sample.pieces - first.pieces) / seconds : tokenRate,
          })
    return { rate: (done - first.done) / seconds, tokenRate, eta }
  }

  #bar(): string {
    const state = this.#options.state()
    const { done, total, errors, retries, inFlight, waiting, pace } = state
    const { rate, tokenRate, eta } = this.#measure(state)
    const first = firstTokenText(state)
    const text = [
      `${done}/${total ?? '?'}`,
      `${errors} failed`,
      `${retries} retried`,
      `${rate.toFixed(1)} req/s`,
      `${Math.round(tokenRate)} tok/s`,
      `${inFlight} in flight`,
      waiting === undefined
        ? `ETA ${eta === undefined ? '?' : formatDuration(eta)}`
        : `waiting: ${waiting}`,
      ...(pace === undefined ? [] : [pace]),
      ...(first === undefined ? [] : [first]),
    ].join(', ')
    const room = Math.max(20, this.#options.columns() - 1)
    const share = total ? Math.min(1, done / total) : 0
    return (barPicture(share, room - text.length) + text).slice(0, room)
  }
}

/** How long first tokens take at present, against the server's best. */
function firstTokenText({ firstToken, firstTokenFloor }: ProgressState): string | undefined {
  if (firstToken === undefined) return undefined
  const floor = firstTokenFloor === undefined ? '' : ` (floor ${formatDuration(firstTokenFloor)})`
  return `first token: ${formatDuration(firstToken)}${floor}`
}
