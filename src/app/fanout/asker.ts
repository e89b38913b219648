import type { Clock } from '../../core/clock.ts'
import type { Diagnosis, Finding } from '../../core/diagnosis.ts'
import type { Failure } from '../../core/failure.ts'
import type { ApiRequest } from '../../core/request.ts'
import type { RetryBudget } from '../../core/retry-budget.ts'
import { type RetrySettings, retryDelay } from '../../core/retry-policy.ts'
import { REDIRECTS } from '../../core/status-failure.ts'
import type { Deadlines } from '../../net/deadlines.ts'
import { exchange } from '../../net/exchange.ts'
import type { ExchangeSettings } from '../../net/exchange-context.ts'
import type { Outcome } from '../../net/outcome.ts'
import { type Accounting, increment } from './accounting.ts'
import { Attempt } from './attempt.ts'
import type { EndpointPool, PooledEndpoint } from './endpoint-pool.ts'
import type { TokenCosts } from './token-costs.ts'

/** What became of a request after all its attempts. */
export type Asked =
  | { kind: 'replied'; outcome: Replied; attempts: number; startedAt: number }
  | { kind: 'failed'; failure: Failure; attempts: number }
  | { kind: 'left' }

type Replied = Exclude<Outcome, { kind: 'failure' }>

export interface AskerOptions {
  clock: Clock
  random: () => number
  retry: RetrySettings
  budget: RetryBudget
  pool: EndpointPool
  deadlines: Deadlines
  /** Bytes of an answer at most, after decompression. */
  maxAnswer: number
  accounting: Accounting
  costs: TokenCosts
  diagnosis: Diagnosis
  onFinding: (finding: Finding) => void
  /** Ends the run: the server refuses it, or cannot be reached. */
  onFatal: (error: Error) => void
}

/** Failures after which the server itself is asked whether it is well. */
const SUSPECT = new Set(['refused', 'reset', 'closed', 'network', 'http-502', 'http-503'])
/** Statuses that end the run while nothing has succeeded yet. */
const REFUSALS = new Set([401, 403, 404, ...REDIRECTS])

/** Sends requests until they are answered, are out of attempts, or the run ends: the one retry owner. */
export class Asker {
  #options: AskerOptions
  #stopped = false
  #givenUp = false
  #wakeAll = new Set<() => void>()
  #settings: ReadonlyMap<PooledEndpoint, ExchangeSettings>

  constructor(options: AskerOptions) {
    this.#options = options
    const { clock, deadlines, maxAnswer, pool } = options
    const date = (): number => clock.date()
    this.#settings = new Map(
      pool.endpoints.map((endpoint) => {
        const { headers, endpoint: place } = endpoint.server
        const { basePath, search } = place
        return [endpoint, { deadlines, headers, basePath, search, date, maxAnswer }]
      }),
    )
  }

  /**
   * @param goingOn the request continues a conversation and comes before new ones
   * @param raw the body is handed on as it came (batch lines)
   */
  async ask(request: ApiRequest, goingOn: boolean, raw: boolean): Promise<Asked> {
    const { accounting, clock, retry, budget, random, diagnosis, onFinding } = this.#options
    budget.request()
    let attempts = 1
    let fresh = false
    for (let first = goingOn; ; first = true) {
      const attempt = await this.#attempt(request, first, raw, fresh)
      if (attempt === undefined) return { kind: 'left' }
      const { endpoint, startedAt } = attempt
      const outcome = attempt.outcome!
      if (outcome.kind !== 'failure') {
        this.#countReply(outcome)
        return { kind: 'replied', outcome, attempts, startedAt }
      }
      if (this.#givenUp) return { kind: 'left' }
      const { failure } = outcome
      accounting.discardedTokens += failure.pieces ?? 0
      if (attempt.crowded) {
        // Another request must end first; that this one had no room is no attempt.
        this.#countRetry(failure)
        continue
      }
      // Only a kept connection is found closed, so the next try, on a new one, counts.
      fresh = failure.stale === true
      if (fresh) {
        accounting.reconnects++
        continue
      }
      const verdict = await this.#verdict(failure, request.path, raw, endpoint)
      if (verdict === 'left') return { kind: 'left' }
      if (verdict === 'outage') {
        accounting.outageRetries++
        continue
      }
      if (!failure.retryable || attempts > retry.retries)
        return { kind: 'failed', failure, attempts }
      if (this.#stopped) return { kind: 'left' }
      this.#countRetry(failure)
      for (const finding of diagnosis.retry(failure)) onFinding(finding)
      await this.#pause(retryDelay(retry, attempts, failure.retryAfter, random))
      for (let wait = budget.wait(clock.now()); wait > 0; wait = budget.wait(clock.now())) {
        if (this.#stopped) break
        await this.#pause(wait)
      }
      attempts++
    }
  }

  /** No retries any more: the run ends. */
  stop(): void {
    this.#stopped = true
    for (const wake of this.#wakeAll) wake()
  }

  /** What fails from now on was given up by us: it is left, not failed. */
  giveUp(): void {
    this.#givenUp = true
  }

  async #attempt(
    request: ApiRequest,
    first: boolean,
    raw: boolean,
    fresh: boolean,
  ): Promise<Attempt | undefined> {
    const { pool, clock, diagnosis, onFinding, accounting, costs } = this.#options
    const slot = await pool.acquire(first)
    if (slot === undefined) return undefined
    diagnosis.request()
    const { endpoint, connection } = slot
    if (fresh) connection.close()
    const attempt = new Attempt(endpoint, clock, request.stream)
    const settings = this.#settings.get(endpoint)!
    const outcome = await exchange(request, { connection, settings, listener: attempt, raw })
    attempt.end(outcome)
    attempt.crowded =
      outcome.kind === 'failure' && outcome.failure.code === 'descriptors' && pool.narrow()
    pool.release(slot, costs.add(request, outcome, attempt.pieces))
    if (outcome.kind !== 'failure') accounting.addLength(attempt.pieces, outcome.timing.total)
    else for (const finding of diagnosis.failure(outcome.failure)) onFinding(finding)
    return attempt
  }

  #countRetry({ code }: Failure): void {
    const { accounting } = this.#options
    accounting.retries++
    increment(accounting.retriesByCode, code)
  }

  #countReply({ timing }: Replied): void {
    const { accounting } = this.#options
    accounting.succeeded++
    accounting.latency.add(timing.total)
    if (timing.firstToken !== undefined) accounting.firstToken.add(timing.firstToken)
  }

  /** Whether a failed attempt counts, was an outage's, or ends the run. */
  async #verdict(
    failure: Failure,
    path: string,
    raw: boolean,
    { server, outage }: PooledEndpoint,
  ): Promise<'counts' | 'outage' | 'left'> {
    const { pool, accounting, onFatal } = this.#options
    const { code, httpStatus } = failure
    // A batch line has a url and a model of its own: that they are unknown is told of it alone.
    const refused = httpStatus !== undefined && REFUSALS.has(httpStatus)
    if (refused && !(raw && httpStatus === 404) && accounting.succeeded === 0) {
      onFatal(server.refusal(failure, path))
      return 'left'
    }
    const suspect = SUSPECT.has(code) || (code === 'dns' && !server.seen)
    if (!suspect || this.#stopped) return 'counts'
    if (!pool.seen && pool.endpoints.length === 1 && !(await server.isWell())) {
      if (this.#stopped) return 'left'
      onFatal(server.unreachable(failure.message))
      return 'left'
    }
    if ((await outage.ask()) === 'well') return 'counts'
    if (this.#stopped) return 'left'
    if (!pool.seen && pool.allResting) {
      onFatal(server.unreachable(failure.message))
      return 'left'
    }
    return 'outage'
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
