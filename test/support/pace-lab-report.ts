import { type LabOptions, type LabResult, runLab } from './pace-lab.ts'
import type { Profile } from './pace-lab-profile.ts'

const SECOND = 1000
/** Share of the requests after which warm-up is over. */
const WARM = 0.25
/** Seconds over which a rate is averaged when it is asked since when it was reached. */
const SMOOTH = 10
/** Seconds within which the limit must not swing. */
const SWING = 300
/** The best fixed concurrency's first-token time is taken at the lowest that reaches this share. */
const NEARLY = 0.97
const HIGHEST = 2048
const STEP = 2 ** 0.25
/** A limit is found where it stays for so many seconds with which this share of the best is reached. */
const KEPT = 60
const GOOD = 0.95
/** Seconds that the median first token may take, and below which the best's is quick. */
const WAIT = 5
const QUICK = 1

/** The figures of one run. Rates in tokens a second, times in seconds. */
export interface Figures {
  steady: number
  whole: number
  firstToken: number
  /** First tokens that took longer than a minute. */
  slow: number
  timeouts: number
  refusals: number
  /** Largest share by which the limit swung within five minutes after warm-up. */
  swing: number
  /** Rate of the other client after warm-up, until the input ended. */
  neighbour: number
  meanLimit: number
}

/** Limits with which a server is used well: from the lowest to the highest. */
export interface Band {
  low: number
  high: number
}

/** What the best fixed concurrency does. */
export interface Best {
  /** Those with 95 % of the best and a first token within five seconds, if the best's is quick. */
  band: Band
  concurrency: number
  steady: number
  whole: number
  /** At the lowest concurrency with nearly the same throughput. */
  nearly: Figures & { concurrency: number }
}

export function figuresOf(result: LabResult): Figures {
  const { seconds, endedAt, exhaustedAt, firstTokens } = result
  const end = Math.max(exhaustedAt, 2 * SECOND)
  const last = seconds.findLast(({ at }) => at <= end)!
  const first = seconds.find(({ tokens }) => tokens >= WARM * last.tokens)!
  const warm = seconds.filter(({ at }) => at >= first.at && at <= last.at)
  const sorted = firstTokens.toSorted((a, b) => a - b)
  return {
    steady: ((last.tokens - first.tokens) / (last.at - first.at)) * SECOND,
    whole: (seconds.at(-1)!.tokens / endedAt) * SECOND,
    firstToken: sorted[Math.floor(sorted.length / 2)]! / SECOND,
    slow: sorted.filter((ms) => ms > 60 * SECOND).length,
    timeouts: result.timeouts,
    refusals: result.refusals,
    swing: swingOf(warm.map(({ limit }) => limit)),
    neighbour: ((last.neighbour - first.neighbour) / (last.at - first.at)) * SECOND,
    meanLimit: warm.reduce((sum, { limit }) => sum + limit, 0) / warm.length,
  }
}

function swingOf(limits: readonly number[]): number {
  let worst = 0
  for (let i = 0; i < limits.length; i += SWING / 4) {
    const part = limits.slice(i, i + SWING)
    const most = Math.max(...part)
    // One request more or less is no swing, however few there are.
    worst = Math.max(worst, (most - Math.min(...part) - 1) / most)
  }
  return worst
}

/** Seconds until a rate was reached that is 95 % of another; undefined where it never was. */
export function secondsTo95({ seconds }: LabResult, steady: number): number | undefined {
  for (let i = SMOOTH; i < seconds.length; i++) {
    const tokens = seconds[i]!.tokens - seconds[i - SMOOTH]!.tokens
    if (tokens / SMOOTH >= 0.95 * steady) return i
  }
  return undefined
}

/** Seconds until the limit was within a band for a minute; undefined where it never was. */
export function secondsToLimit({ seconds }: LabResult, { low, high }: Band): number | undefined {
  let since = 0
  for (const [second, { limit }] of seconds.entries()) {
    if (limit < Math.floor(low) || limit > Math.ceil(high)) since = second + 1
    else if (second - since >= KEPT) return since
  }
  return undefined
}

/** Rate of all clients. */
function total({ steady, neighbour }: Figures): number {
  return steady + neighbour
}

/** The edges of the band, between the swept concurrencies by the straight line. */
function bandOf(runs: (Figures & { concurrency: number })[], quick: boolean): Band {
  const least = GOOD * Math.max(...runs.map(total))
  const margins = (run: Figures): number[] => [
    total(run) - least,
    quick ? WAIT - run.firstToken : WAIT,
  ]
  const isGood = (run: Figures): boolean => margins(run).every((margin) => margin >= 0)
  const first = runs.findIndex(isGood)
  const last = runs.findLastIndex(isGood)
  const edge = (inside: number, outside: number): number => {
    const a = runs[inside]!
    const b = runs[outside]
    if (b === undefined) return a.concurrency
    const there = margins(b)
    const parts = margins(a).map((here, i) => (there[i]! < 0 ? here / (here - there[i]!) : 1))
    return a.concurrency + Math.min(...parts) * (b.concurrency - a.concurrency)
  }
  return { low: edge(first, first - 1), high: edge(last, last + 1) }
}

/**
 * Sweeps the fixed concurrencies. Beside a neighbour the best is the lowest that leaves nothing of
 * the server idle: beyond that a client only takes from the other. Beside one of our own kind it is
 * what one client alone gets. The limits of several servers are good where each of them is.
 */
export function sweep(met: Profile, requests: number, seed = 1): Best {
  const profile = isShared(met) ? { ...met, neighbour: 0 } : met
  const runs = concurrencies(profile).map((concurrency) => {
    const options: LabOptions = { profile, requests, seed, pace: { fixed: concurrency } }
    return { concurrency, ...figuresOf(runLab({ ...options, firstTokenBudget: 1e12 })) }
  })
  const most = Math.max(...runs.map(total))
  const nearly = runs.find((run) => total(run) >= NEARLY * most)!
  const { servers } = profile
  const band =
    servers.length > 1
      ? servers
          .map((server) => sweep({ ...profile, servers: [server] }, requests, seed).band)
          .reduce((a, b) => ({ low: a.low + b.low, high: a.high + b.high }))
      : bandOf(runs, nearly.firstToken < QUICK)
  if (profile.neighbour) {
    const full = runs.find((run) => total(run) >= 0.995 * most)!
    return { ...full, nearly: full, band }
  }
  const best = runs.reduce((a, b) => (b.steady > a.steady ? b : a))
  return { ...best, whole: Math.max(...runs.map(({ whole }) => whole)), nearly, band }
}

/** Whether another client that finds its pace as we do loads the server. */
export function isShared({ neighbour }: Profile): boolean {
  return typeof neighbour === 'object'
}

/** Every power of STEP up to well beyond all knees, and the knees themselves. */
function concurrencies({ servers, neighbour }: Profile): number[] {
  const slots = servers.reduce((sum, server) => sum + server.slots, 0)
  const list = [slots, slots - (typeof neighbour === 'number' ? neighbour : 0)]
  for (const { refuseAbove, thrashPast } of servers) list.push(refuseAbove ?? 0, thrashPast ?? 0)
  // Beyond what is refused a fixed number of requests is a storm of retries.
  const refused = Math.min(...servers.map((server) => server.refuseAbove ?? HIGHEST))
  const most = Math.min(HIGHEST, 2 * slots, refused)
  for (let c = 2; c <= most; c *= STEP) list.push(Math.round(c))
  return [...new Set(list)].filter((c) => c >= 2 && c <= most).toSorted((a, b) => a - b)
}
