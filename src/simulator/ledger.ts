/** What became of an inference request. */
export type Outcome =
  /** The whole answer went out. */
  | 'completed'
  /** The client went away first. */
  | 'aborted'
  /** A fault spoilt it, by design. */
  | 'faulted'
  /** The request itself was wrong: 400, 401, 404. */
  | 'refused'
  /** An outage, or the end of the server, came first. */
  | 'lost'

/** `GET /stats`. Always `generated = delivered + wasted + in_flight`. */
export interface StatsSnapshot {
  readonly model: string
  readonly speed: number
  /** Server time since the start. */
  readonly uptime_ms: number
  /** POST requests to inference endpoints; `peak` is the most that were open at once. */
  readonly requests: { total: number; open: number; peak: number } & Record<Outcome, number>
  /** `prompted` are prompt tokens computed; all others are output tokens. */
  readonly tokens: {
    prompted: number
    generated: number
    delivered: number
    wasted: number
    in_flight: number
  }
  readonly scheduler: {
    running: number
    waiting: number
    peak_running: number
    preemptions: number
    kv_cache_usage: number
  }
  readonly connections: { open: number; peak: number; total: number }
  /** Requests hit so far, by fault name or status. */
  readonly faults: Readonly<Record<string, number>>
  /** Outages begun so far. */
  readonly outages: number
}

/** Counts requests from arrival to outcome, connections and faults. */
export class Ledger {
  readonly requests = {
    total: 0,
    open: 0,
    peak: 0,
    completed: 0,
    aborted: 0,
    faulted: 0,
    refused: 0,
    lost: 0,
  }
  readonly connections = { open: 0, peak: 0, total: 0 }
  readonly faults: Record<string, number> = {}
  outages = 0
  deliveredTokens = 0
  wastedTokens = 0

  arrived(): void {
    arrive(this.requests)
  }

  /** @param tokens output tokens generated for the request */
  settled(outcome: Outcome, tokens: number): void {
    this.requests.open--
    this.requests[outcome]++
    if (outcome === 'completed') this.deliveredTokens += tokens
    else this.wastedTokens += tokens
  }

  connected(): void {
    arrive(this.connections)
  }

  disconnected(): void {
    this.connections.open--
  }

  injected(fault: string | number): void {
    this.faults[fault] = (this.faults[fault] ?? 0) + 1
  }
}

function arrive(counts: { total: number; open: number; peak: number }): void {
  counts.total++
  counts.open++
  counts.peak = Math.max(counts.peak, counts.open)
}
