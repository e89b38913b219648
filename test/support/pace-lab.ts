import { PaceController } from '../../src/core/pace.ts'
import { lognormal, uniform } from '../../src/simulator/random.ts'
import type { Sequence, SequenceSpec } from '../../src/simulator/sequence.ts'
import { LabEndpoint } from './pace-lab-endpoint.ts'
import type { ServerSpec } from './pace-lab-server.ts'

const SECOND = 1000
/** Milliseconds from the end of one request to the next one's arrival, and the step of the clock. */
const DISPATCH = 50
const MEAN_TOKENS = 1263
const LONGEST = 8000
const SIGMA = 0.9
/** Shares of the run at which a capacity that changes is halved and given back. */
const HALVED = [1 / 3, 2 / 3] as const
const BACKOFF = 1000
const LONGEST_BACKOFF = 60_000
/** Numbers of prompts that are another client's. */
const NEIGHBOURS_FROM = 1_000_000
/** Nothing of ours takes a month. */
const ENDLESS = 30 * 86_400 * SECOND

/** What the client meets. */
export interface Profile {
  name: string
  servers: ServerSpec[]
  promptTokens?: number
  /** Whether the servers lose half of what they have for the middle third of the run. */
  halved?: boolean
  /** Requests that another client has open at the first server all the time. */
  neighbour?: number
}

export interface LabOptions {
  profile: Profile
  requests: number
  /** A number of open requests in all, or a controller for each server. */
  pace: { fixed: number } | { start?: number; metrics: boolean; max?: number }
  seed?: number
  /** Milliseconds that a request waits for its first token before it is given up and sent again. */
  firstTokenBudget?: number
}

/** What a second of the run looked like. */
export interface LabSecond {
  at: number
  limit: number
  open: number
  tokens: number
}

export interface LabResult {
  seconds: LabSecond[]
  /** When the last answer was complete, and when the last prompt was sent. */
  endedAt: number
  exhaustedAt: number
  /** Milliseconds to the first token of each request. */
  firstTokens: number[]
  timeouts: number
  refusals: number
  neighbourTokens: number
  /** Each limit and reason, for a look at what went on. */
  moves: string[]
}

/** Runs prompts against servers on virtual time. */
export function runLab(options: LabOptions): LabResult {
  return new Lab(options).run()
}

class Lab {
  #options: LabOptions
  #seed: number
  #endpoints: LabEndpoint[]
  #fixed: number
  #now = 0
  #sent = 0
  #done = 0
  #next = 0
  /** In order of time, since the delay is the same for all. */
  #arrivals: { at: number; index: number; endpoint: LabEndpoint }[] = []
  #retries: { at: number; index: number; attempt: number }[] = []
  #ready: number[] = []
  #attempts = new Map<number, number>()
  #indexes = new Map<Sequence, number>()
  #neighbours = new Set<Sequence>()
  #neighbourNext = NEIGHBOURS_FROM
  #result: LabResult = {
    seconds: [],
    endedAt: 0,
    exhaustedAt: 0,
    firstTokens: [],
    timeouts: 0,
    refusals: 0,
    neighbourTokens: 0,
    moves: [],
  }

  constructor(options: LabOptions) {
    const { profile, pace, seed = 1 } = options
    this.#options = options
    this.#seed = seed
    this.#fixed = 'fixed' in pace ? pace.fixed : Number.POSITIVE_INFINITY
    this.#endpoints = profile.servers.map((spec, index) => {
      const events = {
        firstToken: (sequence: Sequence) => this.#started(endpoint, sequence),
        finished: (sequence: Sequence) => this.#finished(endpoint, sequence),
      }
      const endpoint: LabEndpoint = new LabEndpoint(spec, seed + 100 * index, events)
      if (!('fixed' in pace)) {
        endpoint.controller = new PaceController(pace.max ?? 2048, pace.start)
        endpoint.hasMetrics = pace.metrics
      }
      return endpoint
    })
  }

  run(): LabResult {
    const { profile, requests } = this.#options
    for (let i = 0; i < (profile.neighbour ?? 0); i++) this.#neighbour(this.#endpoints[0]!, 0)
    for (; this.#done < requests; this.#now += DISPATCH) {
      if (this.#now % SECOND === 0) this.#second()
      this.#pump()
      this.#arrive(this.#now + DISPATCH)
      for (const { server } of this.#endpoints) server.advance(this.#now + DISPATCH)
      if (this.#now > ENDLESS) throw new Error(`${profile.name}: the run does not end`)
    }
    this.#result.endedAt = this.#now
    return this.#result
  }

  /** Sends what may be sent, each to the endpoint with the fewest open requests. */
  #pump(): void {
    const due = this.#retries.filter(({ at }) => at <= this.#now)
    if (due.length > 0) this.#retries = this.#retries.filter(({ at }) => at > this.#now)
    this.#ready.push(...due.map(({ index }) => index))
    while (this.#ready.length > 0 || this.#sent < this.#options.requests) {
      const endpoint = this.#freest()
      if (endpoint === undefined) return
      this.#send(endpoint, this.#ready.shift() ?? this.#sent++, this.#now)
    }
    if (this.#result.exhaustedAt === 0) this.#result.exhaustedAt = this.#now
  }

  #freest(): LabEndpoint | undefined {
    let best: LabEndpoint | undefined
    let open = 0
    for (const endpoint of this.#endpoints) {
      open += endpoint.open
      if (endpoint.open >= endpoint.limit) continue
      if (best === undefined || endpoint.open < best.open) best = endpoint
    }
    return open < this.#fixed ? best : undefined
  }

  #send(endpoint: LabEndpoint, index: number, at: number): void {
    endpoint.open++
    endpoint.unstarted++
    this.#arrivals.push({ at: at + DISPATCH, index, endpoint })
  }

  #arrive(until: number): void {
    while (this.#arrivals[this.#next] && this.#arrivals[this.#next]!.at <= until) {
      const { at, index, endpoint } = this.#arrivals[this.#next++]!
      endpoint.server.advance(at)
      const sequence = endpoint.server.add(this.#spec(index), at)
      if (sequence === undefined) this.#refused(endpoint, index)
      else if (index >= NEIGHBOURS_FROM) this.#neighbours.add(sequence)
      else {
        this.#indexes.set(sequence, index)
        endpoint.opened.add(sequence)
      }
    }
    if (this.#next > 1000) this.#next -= this.#arrivals.splice(0, this.#next).length
  }

  #spec(index: number): SequenceSpec {
    const { promptTokens = 200 } = this.#options.profile
    const length = Math.round(lognormal(this.#seed, index, MEAN_TOKENS, SIGMA))
    const spread = Math.round(promptTokens * (0.5 + uniform(this.#seed + 7, index)))
    return { promptTokens: spread, outputTokens: Math.min(LONGEST, Math.max(1, length)) }
  }

  #refused(endpoint: LabEndpoint, index: number): void {
    endpoint.open--
    endpoint.unstarted--
    endpoint.controller?.limited()
    this.#result.refusals++
    const attempt = (this.#attempts.get(index) ?? 0) + 1
    this.#attempts.set(index, attempt)
    const most = Math.min(LONGEST_BACKOFF, BACKOFF * 2 ** (attempt - 1))
    const delay = most * uniform(this.#seed + 11, index * 31 + attempt)
    this.#retries.push({ at: this.#now + delay, index, attempt })
  }

  #started(endpoint: LabEndpoint, sequence: Sequence): void {
    if (this.#neighbours.has(sequence)) return
    endpoint.unstarted--
    const waited = sequence.firstTokenAt! - sequence.arrivedAt + DISPATCH
    this.#result.firstTokens.push(waited)
    endpoint.controller?.signals.firstToken(waited)
  }

  #finished(endpoint: LabEndpoint, sequence: Sequence): void {
    if (this.#neighbours.delete(sequence)) {
      if (this.#result.exhaustedAt === 0) this.#result.neighbourTokens += sequence.outputTokens
      this.#neighbour(endpoint, sequence.finishedAt!)
      return
    }
    endpoint.close(sequence)
    this.#indexes.delete(sequence)
    this.#done++
    endpoint.controller?.completed(sequence.finishedAt! - sequence.arrivedAt + DISPATCH)
    if (this.#sent >= this.#options.requests) return
    const next = this.#freest()
    if (next !== undefined && this.#ready.length === 0) {
      this.#send(next, this.#sent++, sequence.finishedAt!)
    }
  }

  /** The other client keeps as many requests open as it has. */
  #neighbour(endpoint: LabEndpoint, at: number): void {
    this.#arrivals.push({ at: at + DISPATCH, index: this.#neighbourNext++, endpoint })
  }

  #second(): void {
    const { profile, requests, firstTokenBudget = 1_800_000 } = this.#options
    const share = this.#done / requests
    const halved = profile.halved === true && share >= HALVED[0] && share < HALVED[1]
    const second = { at: this.#now, limit: 0, open: 0, tokens: 0 }
    for (const endpoint of this.#endpoints) {
      endpoint.server.capacity = halved ? 0.5 : 1
      for (const sequence of endpoint.late(this.#now - firstTokenBudget)) {
        this.#result.timeouts++
        endpoint.server.scheduler.abort(sequence, this.#now)
        endpoint.close(sequence)
        endpoint.unstarted--
        endpoint.controller?.firstTokenTimeout()
        this.#ready.push(this.#indexes.get(sequence)!)
        this.#indexes.delete(sequence)
      }
      const move = endpoint.second(this.#now, this.#isExhausted())
      if (move !== undefined) this.#result.moves.push(move)
      second.limit += Math.min(endpoint.limit, this.#fixed)
      second.open += endpoint.open
      second.tokens += endpoint.tokens
    }
    this.#result.seconds.push(second)
  }

  #isExhausted(): boolean {
    return this.#sent >= this.#options.requests && this.#ready.length === 0
  }
}
