import type { Clock } from '../core/clock.ts'
import type { Failure } from '../core/failure.ts'
import { formatDuration } from '../core/quantity.ts'

/** The four budgets of a request, in milliseconds; 0 is none. */
export interface Budgets {
  connect: number
  firstToken: number
  idle: number
  total: number
}

export type TimeoutCode = 'connect-timeout' | 'first-token-timeout' | 'idle-timeout' | 'timeout'

/** An open request as the sweep sees it; times as `Deadlines.now()` gives them. */
export interface Watched {
  startedAt: number
  connected: boolean
  /** Whether the first token (not streamed: the first byte of the body) has come. */
  hasFirstToken: boolean
  /** When the last byte came. */
  lastByteAt: number
  expire(code: TimeoutCode, budget: number): void
  /** Told once for each silence of {@link STALL} within a stream. */
  stall(): void
  /** The silence that was told last. */
  stalledAt: number
  /** Where it stands among those watched; -1 where it is not. */
  place: number
}

/** A stream that is silent for so long, in milliseconds, was preempted or its server is stuck. */
const STALL = 2000

/** One look at all open requests costs microseconds; a timer per request costs one each. */
const SWEEP_EVERY = 250
/** Of wall time: a timer that is asked for more often is always late, and every sweep void. */
const SHORTEST_SWEEP = 25

/**
 * Watches the time budgets of all open requests with one timer. Its clock stands still while this
 * process does not run (stopped, swapped, an event loop blocked by a slow reader of its messages),
 * which the sweep sees by coming late itself: a healthy request is never blamed for us.
 */
export class Deadlines {
  #clock: Clock
  #budgets: Budgets
  #sweepEvery: number
  /**
   * Not a Set: one that many join and leave is made anew again and again, and V8 keeps the entries of
   * each old one reachable from the one before, so that every request lived until a full collection.
   */
  #watched: Watched[] = []
  /** What counts of the time until the last sweep. */
  #counted = 0
  #lastSweep: number
  #stop: () => void

  /** @param speed how many times faster than the wall the clock runs */
  constructor(clock: Clock, budgets: Budgets, speed = 1) {
    this.#clock = clock
    this.#budgets = budgets
    this.#sweepEvery = Math.max(SWEEP_EVERY, SHORTEST_SWEEP * speed)
    this.#lastSweep = clock.now()
    this.#stop = clock.every(this.#sweepEvery, () => this.sweep())
  }

  /**
   * Milliseconds in which this process could do its part. It never runs back: what came between a
   * pause and the sweep that notices it would else be older than its beginning.
   */
  now(): number {
    return this.#counted + this.#since(this.#clock.now())
  }

  watch(request: Watched): void {
    request.place = this.#watched.push(request) - 1
  }

  forget(request: Watched): void {
    const { place } = request
    if (place < 0) return
    request.place = -1
    const last = this.#watched.pop()!
    if (last === request) return
    last.place = place
    this.#watched[place] = last
  }

  /** Ends the requests whose budget is used up. */
  sweep(): void {
    const now = this.#clock.now()
    const blocked = now - this.#lastSweep > 2 * this.#sweepEvery
    this.#counted += this.#since(now)
    this.#lastSweep = now
    // The loop was blocked, and what the servers sent meanwhile is still unread.
    if (blocked) return
    // One that expires leaves, and others may with it.
    for (const request of this.#watched.slice()) {
      if (request.place >= 0) this.#check(request, this.now())
    }
  }

  /** How many requests are open, how many have no first token, and the longest such wait in ms. */
  standing(): { open: number; unstarted: number; longestWait: number } {
    const now = this.now()
    let unstarted = 0
    let longestWait = 0
    for (const request of this.#watched) {
      if (request.hasFirstToken) continue
      unstarted++
      longestWait = Math.max(longestWait, now - request.startedAt)
    }
    return { open: this.#watched.length, unstarted, longestWait }
  }

  stop(): void {
    this.#stop()
  }

  /** What counts of the time since the last sweep: two turns at most. */
  #since(now: number): number {
    return Math.min(now - this.#lastSweep, 2 * this.#sweepEvery)
  }

  #check(request: Watched, now: number): void {
    const { connect, firstToken, idle, total } = this.#budgets
    const age = now - request.startedAt
    if (total > 0 && age > total) request.expire('timeout', total)
    else if (!request.connected) {
      if (connect > 0 && age > connect) request.expire('connect-timeout', connect)
    } else if (!request.hasFirstToken) {
      if (firstToken > 0 && age > firstToken) request.expire('first-token-timeout', firstToken)
    } else {
      const silence = now - request.lastByteAt
      if (idle > 0 && silence > idle) request.expire('idle-timeout', idle)
      else if (silence > STALL && request.stalledAt !== request.lastByteAt) {
        request.stalledAt = request.lastByteAt
        request.stall()
      }
    }
  }
}

const BUDGETS: Record<TimeoutCode, string> = {
  'connect-timeout': 'connect',
  'first-token-timeout': 'first token',
  'idle-timeout': 'idle',
  timeout: 'total',
}

/** A request that was given up, as a Failure. @param budget milliseconds that it had */
export function timeoutFailure(code: TimeoutCode, budget: number): Failure {
  const seconds = budget % 1000 === 0 ? `${budget / 1000} s` : formatDuration(budget)
  const detail = `${BUDGETS[code]} ${seconds}`
  return { code, message: 'Request timed out', detail, retryable: true }
}
