import type { Clock } from '../../core/clock.ts'
import type { Failure } from '../../core/failure.ts'
import type { ApiRequest } from '../../core/request.ts'
import { type RetrySettings, retryDelay } from '../../core/retry-policy.ts'
import type { Slots } from '../../core/slots.ts'
import type { Connection } from '../../net/connection.ts'
import type { Deadlines } from '../../net/deadlines.ts'
import { exchange, type Outcome } from '../../net/exchange.ts'
import type { OutageWatch } from '../../net/outage.ts'
import { type Accounting, increment } from './accounting.ts'
import type { Server } from './server.ts'

/** What became of a request after all its attempts. */
export type Asked =
  | {
      kind: 'replied'
      outcome: Exclude<Outcome, { kind: 'failure' }>
      attempts: number
      startedAt: number
    }
  | { kind: 'failed'; failure: Failure; attempts: number }
  | { kind: 'left' }

export interface AskerOptions {
  clock: Clock
  random: () => number
  retry: RetrySettings
  slots: Slots<Connection>
  deadlines: Deadlines
  server: Server
  outage: OutageWatch
  accounting: Accounting
  /** Ends the run: the server refuses it, or is gone. */
  onFatal: (error: Error) => void
}

/** Failures after which the server itself is asked whether it is well. */
const SUSPECT = new Set(['refused', 'reset', 'closed', 'network', 'http-502', 'http-503'])
/** Statuses that end the run while nothing has succeeded yet. */
const REFUSALS = new Set([401, 403, 404])

/** Sends requests until they are answered, are out of attempts, or the run ends: the one retry owner. */
export class Asker {
  #options: AskerOptions
  #stopped = false
  #wakeAll = new Set<() => void>()

  constructor(options: AskerOptions) {
    this.#options = options
  }

  /**
   * @param goingOn the request continues a conversation and comes before new ones
   * @param raw the body is handed on as it came (batch lines)
   */
  async ask(request: ApiRequest, goingOn: boolean, raw: boolean): Promise<Asked> {
    const { accounting, clock, retry, random } = this.#options
    let attempts = 1
    for (let first = goingOn; ; first = true) {
      const startedAt = clock.date()
      const outcome = await this.#attempt(request, first, raw)
      if (outcome === undefined) return { kind: 'left' }
      if (outcome.kind !== 'failure') return { kind: 'replied', outcome, attempts, startedAt }
      const { failure } = outcome
      accounting.discardedPieces += outcome.timing.firstToken === undefined ? 0 : 1
      const verdict = await this.#verdict(failure, request.path)
      if (verdict === 'left') return { kind: 'left' }
      if (verdict === 'over') {
        accounting.outageRetries++
        continue
      }
      if (!failure.retryable || attempts > retry.retries)
        return { kind: 'failed', failure, attempts }
      if (this.#stopped) return { kind: 'left' }
      accounting.retries++
      increment(accounting.retriesByCode, failure.code)
      await this.#pause(retryDelay(retry, attempts, failure.retryAfter, random))
      attempts++
    }
  }

  /** No retries any more: the run ends. */
  stop(): void {
    this.#stopped = true
    this.#options.outage.cancel()
    for (const wake of this.#wakeAll) wake()
  }

  async #attempt(request: ApiRequest, first: boolean, raw: boolean): Promise<Outcome | undefined> {
    const { slots, deadlines, server, clock } = this.#options
    const connection = await slots.acquire(first)
    if (connection === undefined) return undefined
    const outcome = await exchange(request, {
      connection,
      deadlines,
      headers: server.headers,
      basePath: server.endpoint.basePath,
      date: () => clock.date(),
      raw,
    })
    slots.release(connection)
    if (outcome.kind !== 'failure') server.seen = true
    return outcome
  }

  /** Whether a failed attempt counts, was an outage's, or ends the run. */
  async #verdict(failure: Failure, path: string): Promise<'counts' | 'over' | 'left'> {
    const { server, outage, accounting, onFatal } = this.#options
    const { code, httpStatus } = failure
    if (httpStatus !== undefined && REFUSALS.has(httpStatus) && accounting.answered === 0) {
      onFatal(server.refusal(httpStatus, failure.message.replace(/^HTTP \d+:? ?/, ''), path))
      return 'left'
    }
    if (code === 'dns' && !server.seen) {
      onFatal(server.unreachable(failure.message))
      return 'left'
    }
    if (!SUSPECT.has(code) || this.#stopped) return 'counts'
    if (!server.seen && !(await server.isWell())) {
      onFatal(server.unreachable(failure.message))
      return 'left'
    }
    const answer = await outage.ask()
    if (answer === 'well') return 'counts'
    if (answer === 'over') return 'over'
    if (!this.#stopped) onFatal(server.unreachable(`it did not come back (--max-outage)`))
    return 'left'
  }

  #pause(ms: number): Promise<void> {
    if (this.#stopped) return Promise.resolve()
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        this.#wakeAll.delete(done)
        resolve()
      }
      const cancel = this.#options.clock.after(ms, done)
      this.#wakeAll.add(done)
    })
  }
}
