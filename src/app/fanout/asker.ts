import type { Clock } from '../../core/clock.ts'
import type { Diagnosis, Finding } from '../../core/diagnosis.ts'
import type { Failure } from '../../core/failure.ts'
import type { Turn } from '../../core/gate.ts'
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
  | { kind: 'replied'; outcome: Replied; attempts: number; startedAt: number; pieces: number }
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
  #pauses = new Set<{ goingOn: boolean; wake: () => void }>()
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

  /** Conversations whose next turn is not open: it waits for its place, or to be asked again. */
  get between(): number {
    const paused = [...this.#pauses].filter(({ goingOn }) => goingOn)
    return this.#options.pool.goingOn + paused.length
  }

  /**
   * @param goingOn the request continues a conversation: it comes before new ones, and is asked to its
   *   end where the run stops, since what came before was paid for
   * @param raw the body is handed on as it came (batch lines)
   */
  async ask(request: ApiRequest, goingOn: boolean, raw: boolean): Promise<Asked> {
    const { accounting, clock, retry, budget, random, diagnosis, onFinding } = this.#options
    budget.request()
    let attempts = 1
    let fresh = false
    for (let turn: Turn = goingOn ? 'going-on' : 'new'; ; turn = goingOn ? turn : 'again') {
      const attempt = await this.#attempt(request, turn, raw, fresh)
      if (attempt === undefined) return { kind: 'left' }
      const { endpoint, startedAt } = attempt
      const outcome = attempt.outcome!
      if (outcome.kind !== 'failure') {
        this.#countReply(outcome)
        return { kind: 'replied', outcome, attempts, startedAt, pieces: attempt.pieces }
      }
      const { failure } = outcome
      accounting.discardedTokens += failure.pieces ?? 0
      if (this.#givenUp) return { kind: 'left' }
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
      if (this.#isOver(goingOn)) return { kind: 'left' }
      this.#countRetry(failure)
      for (const finding of diagnosis.retry(failure)) onFinding(finding)
      await this.#pause(retryDelay(retry, attempts, failure.retryAfter, random), goingOn)
      for (let wait = budget.wait(clock.now()); wait > 0; wait = budget.wait(clock.now())) {
        if (this.#isOver(goingOn)) break
        await this.#pause(wait, goingOn)
      }
      attempts++
    }
  }

  /** No retries any more but of conversations that have begun: the run ends. */
  stop(): void {
    this.#stopped = true
    for (const { goingOn, wake } of this.#pauses) if (!goingOn) wake()
  }

  /** What fails from now on was given up by us: it is left, not failed. */
  giveUp(): void {
    this.#givenUp = true
    for (const { wake } of this.#pauses) wake()
  }

  #isOver(goingOn: boolean): boolean {
    return goingOn ? this.#givenUp : this.#stopped
  }

  async #attempt(
    request: ApiRequest,
    turn: Turn,
    raw: boolean,
    fresh: boolean,
  ): Promise<Attempt | undefined> {
    const { pool, clock, diagnosis, onFinding, accounting, costs } = this.#options
    const slot = await pool.acquire(turn)
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

  async #pause(ms: number, goingOn: boolean): Promise<void> {
    if (this.#isOver(goingOn)) return
    await new Promise<void>((resolve) => {
      const wake = (): void => {
        cancel()
        this.#pauses.delete(pause)
        resolve()
      }
      const cancel = this.#options.clock.after(ms, wake)
      const pause = { goingOn, wake }
      this.#pauses.add(pause)
    })
  }
}
