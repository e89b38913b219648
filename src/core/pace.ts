import { type PaceMetrics, PaceSignals, type PaceView } from './pace-signals.ts'

/** Where the search begins: a low start costs 1 % of 10,000 requests, a high one timeouts. */
const START = 16
const SECOND = 1000

/** Growth of the limit per step in steady state, as a share of it. */
const CAREFUL = 0.03
const MEDIUM = 0.12
const BOLD = 0.25
/** The ramp at most quadruples the limit in so many seconds: +25 % each. */
const RAMP = 1.25
/** Milliseconds between two steps of growth in steady state. */
const STEP_EVERY = 15_000
/** A limit that proved too high is not tried again for so long; twice as long each time. */
const CEILING_FOR = 300_000
const LONGEST_CEILING = 1_800_000
/** Careful steps after a 429 or a preemption. */
const CAREFUL_STEPS = 8

/**
 * Finds the number of open requests that fills a server and not its queue, and follows it. One for
 * each server. Found in a model of batching servers (docs/pace.md has the reasoning and the curves):
 * overshoot costs first-token time and timeouts, undershoot costs throughput at once, so it aims at
 * full slots and a few waiting, and rejects only harm, since a rule that demands a gain for each step
 * stops too early.
 */
export class PaceController {
  limit = START
  /** Why the limit moved last, for a person. */
  reason = 'start'
  readonly signals = new PaceSignals()

  #max: number
  #mode: 'ramp' | 'steady' = 'ramp'
  #growth = BOLD
  #carefulSteps = 0
  #ceiling = Number.POSITIVE_INFINITY
  #ceilingUntil = 0
  #ceilingFor = CEILING_FOR
  #nextStep = 0
  #deafUntil = 0
  #limited: number[] = []
  #timedOut = false
  #got429 = false
  #preemptions: { at: number; total: number; completed: number }[] = []
  #completed = 0
  #stalls = 0
  #told = false
  #wasTold = false

  /**
   * @param max the limit never goes beyond it
   * @param start where the search begins
   */
  constructor(max: number, start = START) {
    this.#max = max
    this.limit = Math.min(start, max)
  }

  /** Notes an answer. @param latency milliseconds */
  completed(latency: number): void {
    this.#completed++
    this.signals.completed(latency)
  }

  /** Notes a 429. */
  limited(): void {
    this.#got429 = true
  }

  /** Notes a request that got no first token in time. */
  firstTokenTimeout(): void {
    this.#timedOut = true
  }

  /** Notes a stream that stood still for two seconds or more: where nothing tells of preemptions. */
  stalled(): void {
    this.#stalls++
  }

  /** Looks at the last second and sets the limit for the next. */
  second(view: PaceView): void {
    this.signals.second(view)
    if (view.now > this.#ceilingUntil) this.#ceiling = Number.POSITIVE_INFINITY
    // Nothing can be learnt from fewer requests than allowed, nor from metrics of long ago.
    if (view.exhausted || view.metrics === 'stale') return
    if (this.#afterTrouble(view) || view.now < this.#deafUntil) return
    if (this.#shrink(view)) return
    // Cuts are made from what is open, never from the limit: repeated ones would drive it to 1.
    if (view.open > this.limit + 1) return
    if (view.open < this.limit - 1) return
    if (this.#mode === 'ramp') this.#ramp(view)
    else this.#grow(view)
  }

  /** 429, first-token timeouts and preemptions: whether one of them moved the limit. */
  #afterTrouble(view: PaceView): boolean {
    const { now, open, unstarted } = view
    if (this.#got429) {
      this.#got429 = false
      if (now < this.#deafUntil) return true
      this.#limited = [...this.#limited.filter((at) => now - at < 60_000), now]
      const cut = this.#limited.length >= 4 ? open * 0.15 : Math.max(1, open * CAREFUL)
      this.#backTo(open - cut, view, '429')
      this.#deafUntil = now + 10 * SECOND
      return true
    }
    if (this.#timedOut) {
      this.#timedOut = false
      this.#set(0.8 * (open - unstarted), 'first-token timeouts')
      this.#mode = 'steady'
      this.#deafUntil = now + 30 * SECOND
      return true
    }
    return this.#afterPreemptions(view)
  }

  #afterPreemptions(view: PaceView): boolean {
    const { now, open } = view
    const metrics = metricsOf(view)
    // One source only: a counter of the server, once it has told one, else streams that stood still.
    if (metrics?.preemptions !== undefined) this.#told = true
    if (this.#told && metrics?.preemptions === undefined) return false
    const total = metrics?.preemptions ?? this.#stalls
    if (this.#told !== this.#wasTold) this.#preemptions = []
    this.#wasTold = this.#told
    this.#preemptions.push({ at: now, total, completed: this.#completed })
    while (now - this.#preemptions[0]!.at > 60_000) this.#preemptions.shift()
    const first = this.#preemptions[0]!
    const preempted = total - first.total
    const share = preempted / Math.max(1, this.#completed - first.completed)
    if (preempted < 3 || share <= 0.25 || now < this.#deafUntil) return false
    const factor = Math.max(0.8, 1 - 0.05 * Math.max(1, share / 0.5))
    this.#backTo(open * factor, view, `${preempted} preemptions in a minute`)
    this.#preemptions = []
    this.#deafUntil = now + Math.min(180_000, Math.max(30_000, this.signals.meanLatency))
    return true
  }

  /** Takes what waits in the server's queue off the limit, in one step. */
  #shrink(view: PaceView): boolean {
    const { leastWaiting, rising } = this.signals
    const slack = this.signals.slack(view)
    if (leastWaiting <= 2 * slack || rising) return false
    this.#set(view.open - leastWaiting + slack, `${Math.round(leastWaiting)} waiting at the server`)
    this.#mode = 'steady'
    this.#growth = CAREFUL
    this.#nextStep = view.now + STEP_EVERY
    return true
  }

  #ramp(view: PaceView): void {
    const { medianWaiting, leastWaiting, rising } = this.signals
    if (medianWaiting > this.signals.slack(view) || (rising && leastWaiting > 0)) return
    if ((metricsOf(view)?.kvUse ?? 0) > 0.5) {
      this.#mode = 'steady'
      this.#growth = MEDIUM
      return
    }
    this.#set(Math.max(this.limit + 1, this.limit * RAMP), 'no queue at the server')
  }

  #grow(view: PaceView): void {
    const kvUse = metricsOf(view)?.kvUse ?? 0
    if (view.now < this.#nextStep || this.limit >= this.#ceiling || kvUse > 0.92) return
    const { medianWaiting } = this.signals
    const slack = this.signals.slack(view)
    if (medianWaiting > slack / 2) this.#growth = CAREFUL
    if (medianWaiting > Math.max(0.5, slack / 2)) return
    const careful = this.#carefulSteps > 0 || kvUse > 0.8
    const growth = careful ? CAREFUL : kvUse > 0.5 ? Math.min(MEDIUM, this.#growth) : this.#growth
    this.#set(this.limit + Math.max(1, growth * this.limit), 'no queue at the server')
    this.#growth = Math.min(BOLD, 2 * growth)
    if (this.#carefulSteps > 0) this.#carefulSteps--
    const pause = careful ? Math.min(120_000, this.signals.meanLatency) : 0
    this.#nextStep = view.now + Math.max(STEP_EVERY, pause)
  }

  /** Goes down to a limit and does not try a higher one for a while. */
  #backTo(limit: number, view: PaceView, reason: string): void {
    this.#set(limit, reason)
    this.#mode = 'steady'
    this.#ceiling = this.limit
    this.#ceilingUntil = view.now + this.#ceilingFor
    this.#ceilingFor = Math.min(LONGEST_CEILING, 2 * this.#ceilingFor)
    this.#carefulSteps = CAREFUL_STEPS
  }

  #set(limit: number, reason: string): void {
    const next = Math.round(Math.min(this.#max, Math.max(1, limit)))
    if (next !== this.limit) this.reason = reason
    this.limit = next
  }
}

function metricsOf({ metrics }: PaceView): PaceMetrics | undefined {
  return typeof metrics === 'object' ? metrics : undefined
}
