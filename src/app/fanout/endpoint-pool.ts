import type { Clock } from '../../core/clock.ts'
import { FirstTokenWatch } from '../../core/first-token-watch.ts'
import { Gate, type Turn } from '../../core/gate.ts'
import type { PaceController } from '../../core/pace.ts'
import { RateLimit } from '../../core/rate-limit.ts'
import { StartOrder } from '../../core/start-order.ts'
import { Connection } from '../../net/connection.ts'
import { OutageWatch } from '../../net/outage.ts'
import type { Server } from './server.ts'

/** The right to have one request open at one endpoint. */
export interface Slot {
  endpoint: PooledEndpoint
  connection: Connection
  /** Tokens that were reserved for it. */
  reserved: number
}

/** A request that is open. */
export interface OpenAttempt {
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** Pieces of text that it has brought. */
  readonly pieces: number
}

/** One server of the run, and how it does. */
export class PooledEndpoint {
  readonly server: Server
  readonly outage: OutageWatch
  /** Requests that are open there now, and the most there ever were. */
  inUse = 0
  peak = 0
  /** Open requests without a first token, of those whose answers are streamed. */
  readonly starts = new StartOrder()
  /** Open requests whose answers come whole: they tell nothing before they end. */
  unstreamed = 0
  /** Pieces of text, about as many tokens, that its streams have brought, unfinished ones too. */
  delivered = 0
  /** When the last of them came. */
  deliveredAt = 0
  readonly attempts = new Set<OpenAttempt>()
  readonly firstTokens = new FirstTokenWatch()
  /** Requests that may be open there; infinite where only their number in all is limited. */
  limit = Number.POSITIVE_INFINITY
  /** Not asked before this moment, as its rate-limit headers say, or where the pace is to be found a 429. */
  notBefore = 0
  /** What finds the limit, where it is to be found. */
  pace: PaceController | undefined
  readonly counts = { requests: 0, answered: 0, failed: 0, outages: 0 }
  readonly free: Connection[] = []
  readonly connections: Connection[] = []
  /** Connections whose reply was taken and has not ended. */
  trailing = 0

  constructor(server: Server, outage: OutageWatch) {
    this.server = server
    this.outage = outage
  }

  get resting(): boolean {
    return this.outage.on
  }
}

export interface PoolOptions {
  clock: Clock
  servers: Server[]
  /** Requests that may be open in all. */
  concurrency: number
  /** Requests and tokens a minute; infinite for no limit. */
  rpm: number
  tpm: number
  maxOutage: number
  /** About how many tokens the next request costs. */
  tokensOfOne: () => number
  onOutage: (endpoint: PooledEndpoint) => void
  onBack: (endpoint: PooledEndpoint, duration: number) => void
  /** No endpoint is left. */
  onGone: (endpoint: PooledEndpoint) => void
}

/**
 * Most servers send the end of a reply with its `[DONE]` or just after it. Who has not sent it by then,
 * in milliseconds, leaves the connection open for good.
 */
const LONGEST_TRAIL = 1000

/** Descriptors that are left free where there were too few. */
const SPARE = 3

/**
 * Gives requests to the endpoint with the fewest open ones; one that is out rests, and its requests
 * go to the others. Keeps the limits of the run as a whole.
 */
export class EndpointPool {
  readonly endpoints: PooledEndpoint[]
  /** Told that one request fewer waits for its turn. */
  onServed: () => void = () => {}
  #options: PoolOptions
  #gate: Gate<Slot>
  #requests: RateLimit
  #tokens: RateLimit
  #inUse = 0
  #concurrency: number
  #isServing = false
  #cancelWake: (() => void) | undefined

  constructor(options: PoolOptions) {
    this.#options = options
    this.#concurrency = options.concurrency
    this.#requests = new RateLimit(options.rpm)
    this.#tokens = new RateLimit(options.tpm)
    this.#gate = new Gate(
      () => this.#take(),
      () => this.onServed(),
    )
    this.endpoints = options.servers.map((server) => this.#pooled(server))
  }

  /** Requests that are open now. */
  get inUse(): number {
    return this.#inUse
  }

  /** Requests that wait for their turn. */
  get waiting(): number {
    return this.#gate.waiting
  }

  /** Those of them that continue a conversation. */
  get goingOn(): number {
    return this.#gate.goingOn
  }

  /** Looks again whether a request can be sent: a limit has changed. */
  serve(): void {
    this.#gate.serve()
  }

  /** Whether no request can be sent at the moment: every endpoint is out. */
  get allResting(): boolean {
    return this.endpoints.every((endpoint) => endpoint.resting)
  }

  /** Whether any endpoint has answered anything in this run. */
  get seen(): boolean {
    return this.endpoints.some((endpoint) => endpoint.server.seen)
  }

  /**
   * Waits for the right to send a request.
   *
   * @returns undefined once the run sends no more such requests
   */
  acquire(turn: Turn): Promise<Slot | undefined> {
    return this.#gate.acquire(turn)
  }

  /** @param tokens what the request has cost, as far as is known */
  release({ endpoint, connection, reserved }: Slot, tokens: number): void {
    this.#tokens.settle(reserved, tokens, this.#options.clock.now())
    endpoint.inUse--
    this.#inUse--
    if (connection.trails) this.#awaitEnd(endpoint, connection)
    else endpoint.free.push(connection)
    this.#serveSoon()
  }

  /** Gives what has become free once the next turn of the conversation that had it can ask for it. */
  #serveSoon(): void {
    if (this.#isServing) return
    this.#isServing = true
    setImmediate(() => {
      this.#isServing = false
      this.#gate.serve()
    })
  }

  /** Keeps a connection whose reply has not ended yet from being used until then. */
  #awaitEnd(endpoint: PooledEndpoint, connection: Connection): void {
    let cancel = (): void => {}
    endpoint.trailing++
    connection.afterTrail(() => {
      cancel()
      endpoint.trailing--
      endpoint.free.push(connection)
    })
    if (endpoint.trailing > this.#concurrency) connection.close()
    else cancel = this.#options.clock.after(LONGEST_TRAIL, () => connection.close())
  }

  /**
   * The machine does not bear so many connections: no more than the others that are open now, less
   * a few descriptors for files and probes.
   *
   * @returns false where no other request is open, so that fewer of them would not help
   */
  narrow(): boolean {
    const others = this.#inUse - 1
    this.#concurrency = Math.max(1, Math.min(this.#concurrency, others - SPARE))
    return others > 0
  }

  /** Sends no request for this reason until it is lifted. */
  hold(reason: string): void {
    this.#gate.hold(reason)
  }

  resume(reason: string): void {
    this.#gate.resume(reason)
  }

  /** No new requests but those of conversations that have begun, as long as a server is there for them. */
  stop(): void {
    for (const { outage } of this.endpoints) outage.cancel()
    if (this.allResting) this.#gate.close()
    else this.#gate.end()
  }

  /** Gives up the requests that are open, and sends none. */
  abort(): void {
    this.#cancelWake?.()
    this.#gate.close()
    const error = new Error('the run was ended')
    for (const connection of this.#connections()) connection.abort(error)
  }

  close(): void {
    this.#cancelWake?.()
    this.#gate.close()
    for (const { outage } of this.endpoints) outage.cancel()
    for (const connection of this.#connections()) connection.close()
  }

  #connections(): Connection[] {
    return this.endpoints.flatMap((endpoint) => endpoint.connections)
  }

  #take(): Slot | undefined {
    if (this.#inUse >= this.#concurrency) return undefined
    const now = this.#options.clock.now()
    const endpoint = this.#best(now)
    if (endpoint === undefined) return undefined
    const reserved = Number.isFinite(this.#options.tpm) ? this.#options.tokensOfOne() : 0
    const wait = Math.max(this.#requests.wait(1, now), this.#tokens.wait(reserved, now))
    if (wait > 0) {
      this.#wakeAfter(wait)
      return undefined
    }
    this.#requests.settle(0, 1, now)
    this.#tokens.reserve(reserved)
    endpoint.peak = Math.max(endpoint.peak, ++endpoint.inUse)
    this.#inUse++
    endpoint.counts.requests++
    return { endpoint, connection: this.#connection(endpoint), reserved }
  }

  #best(now: number): PooledEndpoint | undefined {
    let best: PooledEndpoint | undefined
    let soonest = Number.POSITIVE_INFINITY
    for (const endpoint of this.endpoints) {
      if (endpoint.resting || endpoint.inUse >= endpoint.limit) continue
      if (endpoint.notBefore > now) soonest = Math.min(soonest, endpoint.notBefore)
      else if (best === undefined || endpoint.inUse < best.inUse) best = endpoint
    }
    if (best === undefined && soonest < Number.POSITIVE_INFINITY) this.#wakeAfter(soonest - now)
    return best
  }

  #connection(endpoint: PooledEndpoint): Connection {
    const free = endpoint.free.pop()
    if (free !== undefined) return free
    const connection = new Connection(endpoint.server.connection)
    endpoint.connections.push(connection)
    return connection
  }

  #wakeAfter(ms: number): void {
    this.#cancelWake?.()
    this.#cancelWake = this.#options.clock.after(ms, () => this.#gate.serve())
  }

  #pooled(server: Server): PooledEndpoint {
    const { clock, maxOutage, onOutage, onBack, onGone } = this.#options
    const endpoint: PooledEndpoint = new PooledEndpoint(
      server,
      new OutageWatch({
        clock,
        maxOutage,
        probe: () => server.isWell(),
        onBegin: () => {
          endpoint.counts.outages++
          onOutage(endpoint)
        },
        onEnd: (duration) => {
          onBack(endpoint, duration)
          this.#gate.serve()
        },
        onGone: () => {
          if (this.allResting) onGone(endpoint)
        },
      }),
    )
    return endpoint
  }
}
