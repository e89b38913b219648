import { PaceController } from '../../src/core/pace.ts'
import { hangs, type Start } from '../../src/core/start-order.ts'
import { uniform } from '../../src/simulator/random.ts'
import type { Sequence } from '../../src/simulator/sequence.ts'
import { LabEndpoint } from './pace-lab-endpoint.ts'
import { DISPATCH, delayOf, type Profile, sequenceOf } from './pace-lab-profile.ts'
import { LabServer } from './pace-lab-server.ts'

const SECOND = 1000
const BACKOFF = 1000
const LONGEST_BACKOFF = 60_000
/** Numbers of prompts that are another client's. */
const NEIGHBOURS_FROM = 1_000_000
/** Nothing of ours takes a month. */
const ENDLESS = 30 * 86_400 * SECOND

export interface LabOptions {
  profile: Profile
  requests: number
  /** A number of open requests in all, or a controller for each server. */
  pace: { fixed: number } | { start?: number; metrics: boolean; max?: number; unstreamed?: boolean }
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
  /** Tokens that the other client has got. */
  neighbour: number
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
  /** Each limit and reason, for a look at what went on. */
  moves: string[]
  /** And of the other client. */
  theirs: string[]
}

/** A request on its way. */
interface Sent {
  index: number
  endpoint: LabEndpoint
  start: Start
  /** Requests that were open when it was sent. */
  beside: number
}

/** Runs prompts against servers on virtual time. */
export function runLab(options: LabOptions): LabResult {
  return new Lab(options).run()
}

class Lab {
  #options: LabOptions
  #seed: number
  #servers: LabServer[]
  #endpoints: LabEndpoint[]
  /** Another client at the first server. */
  #neighbour: LabEndpoint | undefined
  #fixed: number
  /** Answers come whole. */
  #unstreamed: boolean
  #now = 0
  #down = false
  #sent = 0
  #done = 0
  #next = 0
  /** In order of time. */
  #arrivals: ({ at: number } & Sent)[] = []
  #retries: { at: number; index: number; attempt: number }[] = []
  #ready: number[] = []
  #attempts = new Map<number, number>()
  #owners = new Map<Sequence, Sent>()
  /** Requests that hang, the first one first. */
  #hung: ({ at: number } & Sent)[] = []
  #neighbourNext = NEIGHBOURS_FROM
  #result: LabResult = {
    seconds: [],
    endedAt: 0,
    exhaustedAt: 0,
    firstTokens: [],
    timeouts: 0,
    refusals: 0,
    moves: [],
    theirs: [],
  }

  constructor(options: LabOptions) {
    const { profile, pace, seed = 1 } = options
    this.#options = options
    this.#seed = seed
    this.#unstreamed = 'metrics' in pace && pace.unstreamed === true
    this.#fixed = 'fixed' in pace ? pace.fixed : Number.POSITIVE_INFINITY
    this.#servers = profile.servers.map((spec, index) => {
      const events = {
        firstToken: (sequence: Sequence) => this.#started(sequence),
        finished: (sequence: Sequence) => this.#finished(sequence),
      }
      return new LabServer(spec, seed + 100 * index, events)
    })
    this.#endpoints = this.#servers.map((server) => this.#endpoint(server, pace))
    const { neighbour } = profile
    if (neighbour === undefined) return
    const metrics = 'metrics' in pace && pace.metrics
    const theirs = typeof neighbour === 'number' ? { fixed: neighbour } : { metrics }
    this.#neighbour = this.#endpoint(this.#servers[0]!, theirs)
  }

  #endpoint(server: LabServer, pace: LabOptions['pace']): LabEndpoint {
    const { metricsAge = 1, told } = this.#options.profile
    const fixed = 'fixed' in pace
    return new LabEndpoint(server, {
      controller: fixed ? undefined : new PaceController(pace.max ?? 2048, pace.start),
      fixed: fixed ? pace.fixed : 0,
      unstreamed: this.#unstreamed,
      metricsAge: !fixed && pace.metrics ? metricsAge : Number.POSITIVE_INFINITY,
      told,
    })
  }

  run(): LabResult {
    const { profile, requests } = this.#options
    for (; this.#done < requests; this.#now += DISPATCH) {
      if (this.#now % SECOND === 0) this.#second()
      this.#pump()
      this.#arrive(this.#now + DISPATCH)
      for (const server of this.#servers) server.advance(this.#now + DISPATCH)
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
    this.#pumpNeighbour()
    while (this.#ready.length > 0 || this.#sent < this.#options.requests) {
      const endpoint = this.#freest()
      if (endpoint === undefined) return
      this.#send(endpoint, this.#ready.shift() ?? this.#sent++, this.#now)
    }
    if (this.#result.exhaustedAt === 0) this.#result.exhaustedAt = this.#now
  }

  /** The other client keeps as many requests open as it may. */
  #pumpNeighbour(): void {
    const { neighbour } = this.#options.profile
    const from = typeof neighbour === 'object' ? neighbour.auto * SECOND : 0
    if (this.#neighbour === undefined || this.#now < from) return
    while (this.#neighbour.open < this.#neighbour.limit) {
      this.#send(this.#neighbour, this.#neighbourNext++, this.#now)
    }
  }

  #freest(): LabEndpoint | undefined {
    if (this.#down) return undefined
    let best: LabEndpoint | undefined
    let open = 0
    for (const endpoint of this.#endpoints) {
      open += endpoint.open
      if (
        endpoint.open >= endpoint.limit ||
        Math.max(endpoint.notBefore, endpoint.server.notBefore) > this.#now
      )
        continue
      if (best === undefined || endpoint.open < best.open) best = endpoint
    }
    return open < this.#fixed ? best : undefined
  }

  #send(endpoint: LabEndpoint, index: number, at: number): void {
    const beside = endpoint.open++
    const start = endpoint.starts.sent()
    const delay = delayOf(this.#options.profile, this.#seed, index)
    const arrival = { at: at + delay, index, endpoint, start, beside }
    let place = this.#arrivals.length
    while (place > this.#next && this.#arrivals[place - 1]!.at > arrival.at) place--
    this.#arrivals.splice(place, 0, arrival)
  }

  #arrive(until: number): void {
    while (this.#arrivals[this.#next] && this.#arrivals[this.#next]!.at <= until) {
      const { at, ...sent } = this.#arrivals[this.#next++]!
      const { index, endpoint } = sent
      endpoint.server.advance(at)
      if (this.#down) {
        endpoint.open--
        endpoint.starts.ended(sent.start)
        this.#ready.push(index)
        continue
      }
      if (this.#hangs(sent, at)) continue
      const isRefused = this.#isByChance('refused', sent)
      const spec = sequenceOf(this.#options.profile, this.#seed, index)
      const sequence = isRefused ? undefined : endpoint.server.add(spec, at)
      if (sequence === undefined) this.#refused(sent)
      else {
        this.#owners.set(sequence, sent)
        endpoint.opened.add(sequence)
      }
    }
    if (this.#next > 1000) this.#next -= this.#arrivals.splice(0, this.#next).length
  }

  /** Whether a request never gets an answer, until it is given up. */
  #hangs(sent: Sent, at: number): boolean {
    if (!this.#isByChance('hung', sent)) return false
    const attempt = (this.#attempts.get(sent.index) ?? 0) + 1
    this.#attempts.set(sent.index, attempt)
    this.#hung.push({ at, ...sent })
    return true
  }

  #isByChance(what: 'hung' | 'refused', { index, endpoint }: Sent): boolean {
    const share = this.#options.profile[what] ?? 0
    const draw = index * 31 + (this.#attempts.get(index) ?? 0)
    return endpoint !== this.#neighbour && share > 0 && uniform(this.#seed + 13, draw) < share
  }

  #refused({ endpoint, index, start, beside }: Sent): void {
    endpoint.open--
    endpoint.starts.ended(start)
    endpoint.controller?.limited(endpoint.open, beside)
    const asked = endpoint.server.retryAfter(this.#now)
    if (asked !== undefined) endpoint.notBefore = this.#now + asked
    if (endpoint === this.#neighbour) return
    this.#result.refusals++
    const attempt = (this.#attempts.get(index) ?? 0) + 1
    this.#attempts.set(index, attempt)
    const most = Math.min(LONGEST_BACKOFF, BACKOFF * 2 ** (attempt - 1))
    const draw = uniform(this.#seed + 11, index * 31 + attempt)
    const delay = asked === undefined ? most * draw : asked * (1 + 0.1 * draw)
    this.#retries.push({ at: this.#now + delay, index, attempt })
  }

  #started(sequence: Sequence): void {
    const { index, endpoint, start, beside } = this.#owners.get(sequence)!
    endpoint.starts.started(start)
    endpoint.controller?.taken(beside)
    const delay = delayOf(this.#options.profile, this.#seed, index)
    const waited = sequence.firstTokenAt! - sequence.arrivedAt + delay
    if (!this.#unstreamed) endpoint.controller?.signals.firstToken(waited)
    if (endpoint !== this.#neighbour) this.#result.firstTokens.push(waited)
  }

  #finished(sequence: Sequence): void {
    const { index, endpoint } = this.#owners.get(sequence)!
    this.#owners.delete(sequence)
    endpoint.close(sequence)
    const delay = delayOf(this.#options.profile, this.#seed, index)
    if (this.#unstreamed) endpoint.controller?.signals.admitted()
    endpoint.controller?.completed(sequence.finishedAt! - sequence.arrivedAt + delay)
    if (endpoint === this.#neighbour) {
      if (endpoint.open < endpoint.limit)
        this.#send(endpoint, this.#neighbourNext++, sequence.finishedAt!)
      return
    }
    this.#done++
    if (this.#sent >= this.#options.requests) return
    const next = this.#freest()
    if (next !== undefined && this.#ready.length === 0) {
      this.#send(next, this.#sent++, sequence.finishedAt!)
    }
  }

  #second(): void {
    const { profile, requests } = this.#options
    const second = { at: this.#now, limit: 0, open: 0, tokens: 0, neighbour: 0 }
    for (const server of this.#servers) {
      server.capacity = profile.capacity?.(this.#done / requests, this.#now / SECOND) ?? 1
      server.speed = profile.speed?.(this.#now / SECOND) ?? 1
    }
    this.#down = profile.down?.(this.#now / SECOND) ?? false
    for (const endpoint of this.#endpoints) {
      if (this.#down) for (const sequence of endpoint.opened) this.#drop(endpoint, sequence)
      else this.#giveUp(endpoint)
      // A server that is down rests, and its controller with it.
      const move = this.#down ? undefined : endpoint.second(this.#now, this.#isExhausted())
      if (move !== undefined) this.#result.moves.push(move)
      second.limit += Math.min(endpoint.limit, this.#fixed)
      second.open += endpoint.open
      second.tokens += endpoint.tokens
    }
    const theirs = this.#neighbour?.second(this.#now, false)
    if (theirs !== undefined) this.#result.theirs.push(theirs)
    second.neighbour = this.#neighbour?.tokens ?? 0
    this.#result.seconds.push(second)
  }

  #giveUp(endpoint: LabEndpoint): void {
    const { firstTokenBudget = 1_800_000 } = this.#options
    while (this.#hung.length > 0 && this.#hung[0]!.at < this.#now - firstTokenBudget) {
      const { index, endpoint: owner, start } = this.#hung.shift()!
      if (!hangs(start, owner.open)) owner.controller?.firstTokenTimeout()
      owner.open--
      owner.starts.ended(start)
      this.#ready.push(index)
    }
    for (const sequence of endpoint.late(this.#now - firstTokenBudget)) {
      this.#result.timeouts++
      this.#drop(endpoint, sequence)
      endpoint.controller?.firstTokenTimeout()
    }
  }

  /** Ends a request that is to be sent again. */
  #drop(endpoint: LabEndpoint, sequence: Sequence): void {
    endpoint.server.scheduler.abort(sequence, this.#now)
    endpoint.close(sequence)
    const { index, start } = this.#owners.get(sequence)!
    endpoint.starts.ended(start)
    this.#ready.push(index)
    this.#owners.delete(sequence)
  }

  #isExhausted(): boolean {
    return this.#sent >= this.#options.requests && this.#ready.length === 0
  }
}
