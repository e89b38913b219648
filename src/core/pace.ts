import { Ceiling } from './pace-ceiling.ts'
import { HeldBack } from './pace-held.ts'
import { CachePressure } from './pace-pressure.ts'
import { DownwardProbe } from './pace-probe.ts'
import { nextOfRamp } from './pace-ramp.ts'
import { PaceSignals, type PaceView } from './pace-signals.ts'
import { GrowthSteps, mostOf } from './pace-steps.ts'
import { GrowthTrial } from './pace-trial.ts'
import { Habit, Preemptions, Refusals } from './pace-trouble.ts'

/**
 * Where the search begins at most: a low start costs seconds, a high one timeouts at a small server,
 * where what was sent at once can only drain.
 */
const START = 4
const SECOND = 1000
/** Where nothing tells of a queue: the number of open requests that fanout-complete has by default. */
const UNSEEN = 128
/** Seconds for which metrics are waited for then. */
const UNSEEN_SECONDS = 15
/** A 429 so long (ms) after the limit has risen is of the number of open requests. */
const BLAMED_FOR = 15_000

/** A ramp that stands still for so many seconds, though all that is allowed is open, is over. */
const RAMP_PAUSE = 20
/** What did harm once may again for so long (ms). */
const GENTLE_FOR = 7_200_000

/**
 * Finds the number of open requests that fills a server and not its queue, and follows it. One for
 * each server. docs/pace.md has the reasoning and the figures: overshoot costs first-token time and
 * timeouts, undershoot costs throughput at once, so it aims at full slots and a few waiting, and
 * rejects only harm, since a rule that demands a gain for each step stops too early.
 */
export class PaceController {
  limit: number
  /** Why the limit moved last, for a person. */
  reason = 'start'
  readonly signals = new PaceSignals()

  #max: number
  #mode: 'ramp' | 'steady' = 'ramp'
  #steps = new GrowthSteps()
  #ceiling = new Ceiling()
  #deafUntil = 0
  #pressure = new CachePressure(this.signals.cache)
  #doubted = false
  #setAt = 0
  #risenAt = 0
  #still = 0
  #unseenSeconds = 0
  #trial = new GrowthTrial(this.signals.delivered)
  #probe = new DownwardProbe(this.signals)
  #held = new HeldBack()
  #refusals = new Refusals()
  #preemptions = new Preemptions()
  #habit = new Habit()
  #accepted: number | undefined
  #timedOut = false
  #completed = 0
  #stalls = 0

  /**
   * @param max the limit never goes beyond it
   * @param start where the search begins, at most at 4
   */
  constructor(max: number, start = START) {
    this.#max = max
    this.limit = Math.min(start, START, max)
  }

  /** Notes an answer. @param latency milliseconds */
  completed(latency: number): void {
    this.#completed++
    this.signals.completed(latency)
  }

  /**
   * Notes a 429.
   * @param others requests that are open beside it: so many are not too many
   * @param beside those that were when it was sent
   */
  limited(others: number, beside = others): void {
    if (this.#refusals.isByChance(beside)) return
    this.#accepted = Math.min(this.#accepted ?? others, others)
  }

  /** Notes a request that the server has taken. @param beside requests open when it was sent */
  taken(beside: number): void {
    this.#refusals.taken(beside)
  }

  /** Notes a request that got no first token in time. */
  firstTokenTimeout(): void {
    this.#timedOut = true
  }

  /** Notes a stream that stood still for two seconds or more: where nothing tells of preemptions. */
  stalled(): void {
    this.#stalls++
  }

  /** What steered the limit so far was no truth: it is looked for anew, from where it is. */
  restart(): void {
    this.#mode = 'ramp'
    this.#still = 0
    this.#pressure.forget()
    this.#ceiling = new Ceiling()
    this.#steps = new GrowthSteps()
    this.#probe.cancel()
    this.#trial.forget()
    this.signals.forgetWaiting()
  }

  /** Looks at the last second and sets the limit for the next. */
  second(view: PaceView): void {
    const { now, open } = view
    this.signals.second(view)
    // Nothing can be learnt from fewer requests than allowed, nor from metrics of long ago.
    if (view.exhausted) return
    if (view.metrics === 'stale') return void this.#afterTrouble(view)
    // Cuts are made from what is open: while more is open than allowed, one is not done yet.
    const draining = open > this.limit
    const isHeld = this.#held.second(open, this.limit, now)
    if (draining) this.signals.forgetWaiting()
    this.#habit.second(this.limit, this.#pressure.isOn(now))
    // Nor is a rate measured then, or while the prefills of a growth take their time.
    if (draining || this.signals.waiting > this.signals.noise) this.#trial.changed(now)
    if (this.#afterTrouble(view) || this.#shrink(view) || now < this.#deafUntil) return
    if (view.metrics === undefined && view.unstreamed > open / 2) return this.#unseen(now)
    if (this.#probe.active) return isHeld ? this.#giveUpLooking(now) : this.#look(view)
    if (draining || open < this.limit - 1) return
    if (this.#mode === 'ramp') this.#ramp(view)
    else if (isHeld) return
    else if (this.#mayLook(now)) {
      this.#set(this.#probe.begin(this.limit), 'a look whether fewer do as well', now)
    } else this.#grow(view)
  }

  /** 429, first-token timeouts and preemptions: whether one of them moved the limit. */
  #afterTrouble(view: PaceView): boolean {
    const { now, open, unstarted } = view
    const accepted = this.#accepted
    if (accepted !== undefined) {
      this.#accepted = undefined
      if (now < this.#deafUntil) return true
      const risen = now - this.#risenAt < BLAMED_FOR
      const limit = this.#refusals.bound(accepted, this.limit, risen, now)
      this.#deafUntil = now + (risen ? 3 : 10) * SECOND
      this.#steps.careful()
      if (limit === undefined) return true
      this.#cut(limit, '429', now)
      this.#ceiling.refused(this.limit, now)
      return true
    }
    if (this.#timedOut) {
      this.#timedOut = false
      this.#cut(0.8 * (open - unstarted), 'first-token timeouts', now)
      this.#deafUntil = now + 30 * SECOND
      return true
    }
    return this.#afterPreemptions(view)
  }

  #afterPreemptions(view: PaceView): boolean {
    const { now, open, metrics } = view
    const told = typeof metrics === 'object' ? metrics.preemptions : undefined
    const preempted = this.#preemptions.second(now, told, this.#stalls, this.#completed)
    if (preempted === undefined || now < this.#deafUntil) return false
    this.#pressure.preempted(now)
    const factor = Math.max(0.92, 1 - 0.03 * Math.max(1, preempted.each))
    const reason = `${Math.round(preempted.perMinute)} preemptions a minute`
    this.#cut(this.#habit.bound(open * factor), reason, now)
    this.#ceiling.preempted(this.limit, now)
    this.#steps.careful()
    this.#preemptions.forget()
    this.#deafUntil = now + Math.min(180_000, Math.max(60_000, this.signals.meanLatency))
    return true
  }

  /** Nothing tells of a queue: only trouble moves the limit. */
  #unseen(now: number): void {
    if (this.#mode !== 'ramp' || ++this.#unseenSeconds < UNSEEN_SECONDS) return
    this.#mode = 'steady'
    this.#set(UNSEEN, 'neither streams nor /metrics tell of a queue', now)
  }

  /** Takes what waits in the server's queue off the limit, in one step. */
  #shrink({ now, open }: PaceView): boolean {
    const { leastWaiting, rising, noise, hasStarted } = this.signals
    // The first prompt of all may be a long one.
    if (!hasStarted) return false
    const slack = Math.max(this.signals.slack, this.#pressure.slack(now, open))
    if (leastWaiting <= Math.max(0.5, 2 * (this.#mode === 'ramp' ? noise : slack)) || rising)
      return false
    const limit = this.#habit.bound(open - leastWaiting + slack)
    if (Math.round(limit) >= this.limit) return false
    this.#pressure.metQueue(now)
    this.#trial.plain = false
    this.#cut(limit, `${Math.round(leastWaiting)} waiting at the server`, now)
    this.#steps.metQueue(now)
    return true
  }

  #ramp(view: PaceView): void {
    const { waiting, medianWaiting, leastWaiting, rising, noise } = this.signals
    // Neither growing nor cut: a queue just short of the noise of a ramp, which is to be judged anew.
    if (++this.#still > RAMP_PAUSE) this.#mode = 'steady'
    if (Math.max(waiting, medianWaiting) > noise || (rising && leastWaiting > 0)) return
    if (this.signals.cache.soon > 0.7) {
      // Not by the first few requests: a gauge that stands still, which will soon be found out.
      if (this.limit > START) this.#mode = 'steady'
      this.#pressure.endedRamp(view.now)
      return
    }
    if (!this.#mayGrow(view.now)) return
    const limit = nextOfRamp(this.limit, this.#trial.lastGain, this.signals.completions)
    this.#set(limit, 'no queue at the server', view.now)
  }

  #grow(view: PaceView): void {
    const { now } = view
    const harmless = this.#trial.harm(this.limit, now)
    if (harmless !== undefined) return this.#doubt(harmless, now)
    const ceiling = this.#ceiling.at(now)
    // What stopped the growth may still be there.
    if (this.limit >= ceiling) this.#steps.slow()
    if (!this.#steps.due(now) || this.limit >= ceiling || this.#pressure.isFull(now)) return
    const { medianWaiting, slack, meanLatency, cache } = this.signals
    if (medianWaiting > slack / 2) this.#steps.slow()
    if (medianWaiting > Math.max(0.5, slack / 2)) return
    if (!this.#mayGrow(now)) return
    const pressed = this.#pressure.isOn(now)
    const { plain } = this.#trial
    const growth = this.#steps.take(now, { pressed, half: cache.soon > 0.5, plain }, meanLatency)
    if (pressed) this.#habit.begin(this.limit)
    const next =
      this.limit + Math.min(mostOf(growth, plain, this.signals), Math.max(1, growth * this.limit))
    const limit = Math.max(this.limit, this.#habit.bound(next))
    this.#set(Math.min(limit, ceiling), 'no queue at the server', now)
  }

  /** Whether the throughput allows a higher limit; goes back where the last growth did harm. */
  #mayGrow(now: number): boolean {
    const verdict = this.#trial.judge(this.limit, now, this.#mode === 'ramp')
    if (verdict === 'flat' && this.#mode === 'steady') this.#steps.gainedLittle(now)
    if (verdict === 'flat') this.#mode = 'steady'
    if (typeof verdict !== 'object') return verdict === 'grow'
    this.#doubt(verdict.backTo, now)
    return false
  }

  /**
   * The last growth seems to have done harm. Rates also fall for other reasons (the prefills of
   * many new requests, the first long answers): so look whether the former limit is better.
   */
  #doubt(limit: number, now: number): void {
    const reason = `fewer tokens a second with ${this.limit}`
    this.#doubted = true
    this.#set(this.#probe.begin(this.limit, limit, 11), reason, now)
  }

  /** Where the KV cache is the limit, preemptions tell more than a look. */
  #mayLook(now: number): boolean {
    const quiet = now - this.#setAt >= 30 * SECOND
    return quiet && !this.#pressure.isOn(now) && this.#probe.due(this.limit, now)
  }

  /** Goes on looking whether a lower limit does as well. */
  #look({ now, open }: PaceView): void {
    const probed = this.#probe.second(now, open)
    if (probed === undefined) return
    const { kept, shared, limit, before } = probed
    const doubted = this.#doubted
    this.#doubted = false
    this.#steps.pause(now)
    if (doubted && this.#trial.plain) this.#steps.gainedLittle(now)
    if (doubted || !this.#trial.plain) this.#trial.forget()
    if (!kept) return this.#set(before, 'fewer did not do as well', now)
    const as = `as many tokens a second as with ${before}`
    this.#cut(limit, shared ? 'requests of others wait too' : as, now)
    this.#steps.slow()
    if (shared) return
    this.#ceiling.looked(probed, doubted, now)
    if (doubted) this.#steps.gentle(now + GENTLE_FOR)
  }

  #giveUpLooking(now: number): void {
    this.#doubted = false
    this.#set(this.#probe.cancel() ?? this.limit, 'requests are held back', now)
  }

  #cut(limit: number, reason: string, now: number): void {
    this.#mode = 'steady'
    this.#probe.cancel()
    this.#doubted = false
    this.#trial.forget()
    this.signals.forgetWaiting()
    this.#set(Math.min(limit, this.limit), reason, now)
  }

  #set(limit: number, reason: string, now: number): void {
    const next = Math.round(Math.min(this.#max, Math.max(1, limit)))
    if (next === this.limit) return
    if (next > this.limit) this.#risenAt = now
    this.reason = reason
    this.limit = next
    this.#setAt = now
    this.#still = 0
    this.#trial.changed(now)
  }
}
