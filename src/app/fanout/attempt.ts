import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import type { PaceController } from '../../core/pace.ts'
import { restByHeaders } from '../../core/rate-headers.ts'
import { hangs, type Start } from '../../core/start-order.ts'
import type { ExchangeListener } from '../../net/exchange-context.ts'
import type { Outcome } from '../../net/outcome.ts'
import type { PooledEndpoint } from './endpoint-pool.ts'

/** Milliseconds that one 429 keeps all other requests from an endpoint at most. */
const LONGEST_REST = 60_000
/** Milliseconds without a piece of text from any stream. */
const ALL_SILENT = 1000

/** One request at one endpoint: tells the endpoint, and what steers it, how it goes. */
export class Attempt implements ExchangeListener {
  readonly endpoint: PooledEndpoint
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** Undefined until it has ended. */
  outcome: Outcome | undefined
  /** Pieces of text, about as many tokens, that it brought. */
  pieces = 0
  /** Our own machine had no file descriptor for it beside the others. */
  crowded = false
  #clock: Clock
  #streamed: boolean
  /** Requests that were open beside it when it was sent. */
  #beside: number
  #start: Start | undefined

  constructor(endpoint: PooledEndpoint, clock: Clock, streamed: boolean) {
    this.endpoint = endpoint
    this.#streamed = streamed
    this.startedAt = clock.date()
    this.#clock = clock
    this.#beside = endpoint.inUse - 1
    if (streamed) this.#start = endpoint.starts.sent()
    else endpoint.unstreamed++
    endpoint.attempts.add(this)
  }

  onFirstToken(ms: number): void {
    // Of an answer that comes whole the first token is the last.
    if (!this.#streamed) return
    const { endpoint } = this
    if (this.#start !== undefined) endpoint.starts.started(this.#start)
    endpoint.firstTokens.add(ms, this.#clock.now())
    endpoint.pace?.signals.firstToken(ms)
    endpoint.pace?.taken(this.#beside)
  }

  onPieces(count: number): void {
    this.endpoint.delivered += count
    this.endpoint.deliveredAt = this.#clock.now()
    this.pieces += count
  }

  onStall(): void {
    const { endpoint } = this
    // Where all streams stand still at once, none of them was preempted for the others.
    if (this.#clock.now() - endpoint.deliveredAt < ALL_SILENT) endpoint.pace?.stalled()
  }

  onHeaders(headers: IncomingHttpHeaders): void {
    const { endpoint } = this
    endpoint.server.seen = true
    this.#rest(restByHeaders(headers))
  }

  end(outcome: Outcome): void {
    const { endpoint } = this
    if (!this.#streamed) endpoint.unstreamed--
    else if (this.#start !== undefined) endpoint.starts.ended(this.#start)
    endpoint.attempts.delete(this)
    if (outcome.kind === 'failure') endpoint.counts.failed++
    else endpoint.counts.answered++
    this.outcome = outcome
    if (endpoint.pace !== undefined) this.#tellPace(endpoint.pace, outcome)
  }

  /** What the controller of the pace learns from a reply. */
  #tellPace(pace: PaceController, outcome: Outcome): void {
    if (outcome.kind !== 'failure') {
      if (!this.#streamed) {
        pace.signals.admitted()
        pace.taken(this.#beside)
      }
      return pace.completed(outcome.timing.total)
    }
    const { httpStatus, code, retryAfter = 0 } = outcome.failure
    const isHung = this.#start !== undefined && hangs(this.#start, this.endpoint.inUse)
    if (code === 'first-token-timeout' && !isHung) pace.firstTokenTimeout()
    if (httpStatus !== 429) return
    pace.limited(this.endpoint.inUse - 1, this.#beside)
    // Whose number of requests we choose is not asked by others while it refuses: of 3,000 prompts
    // at 40 a minute each would be refused a dozen times, and be lost when its attempts are used up.
    this.#rest(Math.min(retryAfter, LONGEST_REST))
  }

  /** The endpoint is not asked for so many milliseconds. */
  #rest(ms: number): void {
    if (ms <= 0) return
    const { endpoint } = this
    endpoint.notBefore = Math.max(endpoint.notBefore, this.#clock.now() + ms)
  }
}
