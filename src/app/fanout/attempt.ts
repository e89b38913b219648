import type { IncomingHttpHeaders } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import { restByHeaders } from '../../core/rate-headers.ts'
import type { ExchangeListener, Outcome } from '../../net/exchange.ts'
import type { PooledEndpoint } from './endpoint-pool.ts'

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
  #started = false

  constructor(endpoint: PooledEndpoint, clock: Clock) {
    this.endpoint = endpoint
    this.startedAt = clock.date()
    this.#clock = clock
    endpoint.unstarted++
  }

  onFirstToken(ms: number): void {
    const { endpoint } = this
    endpoint.unstarted--
    this.#started = true
    endpoint.firstTokens.add(ms, this.#clock.now())
    endpoint.pace?.signals.firstToken(ms)
  }

  onPieces(count: number): void {
    this.endpoint.delivered += count
    this.endpoint.begun += count
    this.pieces += count
  }

  onStall(): void {
    this.endpoint.pace?.stalled()
  }

  onHeaders(headers: IncomingHttpHeaders): void {
    const { endpoint } = this
    endpoint.server.seen = true
    const rest = restByHeaders(headers)
    if (rest > 0) endpoint.notBefore = Math.max(endpoint.notBefore, this.#clock.now() + rest)
  }

  end(outcome: Outcome): void {
    const { endpoint } = this
    if (!this.#started) endpoint.unstarted--
    endpoint.begun -= this.pieces
    if (outcome.kind === 'failure') endpoint.counts.failed++
    else endpoint.counts.answered++
    this.outcome = outcome
    tellPace(endpoint, outcome)
  }
}

/** What the controller of the pace learns from a reply. */
function tellPace({ pace }: PooledEndpoint, outcome: Outcome): void {
  if (pace === undefined) return
  if (outcome.kind !== 'failure') pace.completed(outcome.timing.total)
  else if (outcome.failure.httpStatus === 429) pace.limited()
  else if (outcome.failure.code === 'first-token-timeout') pace.firstTokenTimeout()
}
