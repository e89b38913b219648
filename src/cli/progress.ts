import type { Clock } from '../core/clock.ts'
import type { AnswerLengths } from '../core/eta.ts'
import { formatDuration } from '../core/quantity.ts'
import { barPicture } from './bar.ts'
import type { Reporter } from './reporter.ts'

/** What tells how long the run goes on: pieces of text, or milliseconds where answers come whole. */
export interface OpenWork {
  lengths: AnswerLengths
  /** How far each answer that is coming has come. */
  openLengths: readonly number[]
  /** What streams have brought in all; undefined where answers come whole. */
  delivered: number | undefined
}

/** Where a run stands. */
export interface ProgressState extends OpenWork {
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
/** The speed of one answer is over more: a stall must not make an hour of what is left. */
const SPEED_WINDOW = 120_000
const SAMPLE_EVERY = 1000

/** What stood when. */
interface Sample {
  at: number
  done: number
  tokens: number
  delivered: number
  open: number
}

/** Shows how a run goes: a bar on a terminal, else a line now and then. */
export class Progress {
  #options: ProgressOptions
  #startedAt: number
  #samples: Sample[] = []
  #mostOpen = 0
  #drawn = false
  #stops: (() => void)[] = []

  constructor(options: ProgressOptions) {
    this.#options = options
    this.#startedAt = options.clock.now()
    this.#samples.push({ at: this.#startedAt, done: 0, tokens: 0, delivered: 0, open: 0 })
    this.#stops.push(options.clock.every(SAMPLE_EVERY, () => this.#sample(options.state())))
    if (options.live) {
      const timer = setInterval(() => this.#draw(), REDRAW_EVERY)
      timer.unref()
      this.#stops.push(() => clearInterval(timer))
      options.report.setLive({ clear: () => this.#clear(), draw: () => this.#redraw() })
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
    // What was answered before this run is done, but says nothing of how fast it goes.
    const rate = elapsed > 0 ? (answered + errors) / elapsed : 0
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
    if (this.#drawn) this.#options.report.raw('\r\u001b[K')
  }

  /** Behind a message: one that comes before the first picture, and may be the last, stays alone. */
  #redraw(): void {
    if (this.#drawn) this.#draw()
  }

  #draw(): void {
    this.#drawn = true
    this.#options.report.raw(`\r${this.#bar()}\u001b[K`)
  }

  #sample(state: ProgressState): Sample {
    const { answered, errors, completionTokens, delivered, openLengths } = state
    const at = this.#options.clock.now()
    const open = openLengths.length
    // As a trace counts them: also what the answers have brought that are still coming.
    const tokens = Math.max(completionTokens, delivered ?? 0)
    const done = answered + errors
    const sample = { at, done, tokens, delivered: delivered ?? 0, open }
    this.#mostOpen = Math.max(this.#mostOpen, open)
    this.#samples.push(sample)
    while (this.#samples.length > 2 && at - this.#samples[0]!.at > SPEED_WINDOW) {
      this.#samples.shift()
    }
    return sample
  }

  /** Rates over the last moments, and what is left by them. */
  #measure(state: ProgressState): { rate: number; tokenRate: number; eta: number | undefined } {
    const last = this.#sample(state)
    const first = this.#samples.find(({ at }) => last.at - at <= RATE_WINDOW) ?? last
    const eta = this.#timeLeft(state, rateOf('delivered', this.#samples[0]!, last))
    return { rate: rateOf('done', first, last), tokenRate: rateOf('tokens', first, last), eta }
  }

  #timeLeft(state: ProgressState, deliveredRate: number): number | undefined {
    const { total, done, lengths, openLengths, delivered } = state
    if (total === undefined) return undefined
    const open = openLengths.slice(0, Math.max(0, total - done))
    const slots = this.#samples.reduce((sum, one) => sum + one.open, 0) / this.#samples.length
    return lengths.timeLeft({
      unsent: Math.max(0, total - done - open.length),
      open,
      // An answer that comes whole is measured in milliseconds, a thousand of which come in a second.
      speed: delivered === undefined ? 1000 : deliveredRate / slots,
      slots,
      most: this.#mostOpen,
    })
  }

  #bar(): string {
    const state = this.#options.state()
    const { done, total, errors, retries, inFlight, waiting, pace } = state
    const { rate, tokenRate, eta } = this.#measure(state)
    const first = firstTokenText(state)
    const room = Math.max(20, this.#options.columns() - 1)
    const needed = [
      `${done}/${total ?? '?'}`,
      `${errors} failed`,
      `${retries} retried`,
      `${rate.toFixed(1)} req/s`,
      `${Math.round(tokenRate)} tok/s`,
      `${inFlight} in flight`,
      waiting === undefined
        ? `ETA ${eta === undefined ? '?' : formatDuration(eta)}`
        : `waiting: ${waiting}`,
    ].join(', ')
    // What there is no room for is left out whole.
    const text = [pace, first].reduce<string>((shown, part) => {
      const longer = part === undefined ? shown : `${shown}, ${part}`
      return longer.length > room ? shown : longer
    }, needed)
    const share = total ? Math.min(1, done / total) : 0
    return (barPicture(share, room - text.length) + text).slice(0, room)
  }
}

/** What came in a second between two samples. */
function rateOf(what: 'done' | 'tokens' | 'delivered', from: Sample, to: Sample): number {
  return to.at > from.at ? ((to[what] - from[what]) / (to.at - from.at)) * 1000 : 0
}

/** How long first tokens take at present, against the server's best. */
function firstTokenText({ firstToken, firstTokenFloor }: ProgressState): string | undefined {
  if (firstToken === undefined) return undefined
  const floor = firstTokenFloor === undefined ? '' : ` (floor ${formatDuration(firstTokenFloor)})`
  return `first token: ${formatDuration(firstToken)}${floor}`
}
