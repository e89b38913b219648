import { runLab } from '../test/support/pace-lab.ts'
import { FURTHER } from '../test/support/pace-lab-further.ts'
import type { Profile } from '../test/support/pace-lab-profile.ts'
import { PROFILES } from '../test/support/pace-lab-profiles.ts'
import {
  type Best,
  type Figures,
  figuresOf,
  isShared,
  secondsTo95,
  secondsToLimit,
  sweep,
} from '../test/support/pace-lab-report.ts'
import type { Benchmark } from './support/benchmark.ts'
import type { Reporter } from './support/reporter.ts'
import type { Workshop } from './support/workshop.ts'

/** Requests of a run at full size (`--size 500`). */
const REQUESTS = 10_000
const WAIT = 5
const IDLE = 1
const SWING = 0.2
/** Two of the same kind each get so much of what both get. */
const LEAST_SHARE = 1 / 3

export const pace: Benchmark = {
  name: 'pace',
  summary: '--concurrency auto against the best fixed concurrency, in virtual time',
  run(reporter, workshop) {
    for (const profile of [...PROFILES, ...FURTHER]) {
      const requests = requestsOf(profile, workshop)
      const best = sweep(profile, requests)
      reporter.note(`${profile.name}: best ${bestText(best)}`)
      for (const metrics of [true, false]) compare(reporter, profile, best, requests, metrics)
    }
    return Promise.resolve()
  },
}

function requestsOf({ requests = REQUESTS }: Profile, workshop: Workshop): number {
  return Math.max(Math.min(1000, requests), workshop.scaled(requests))
}

function compare(
  reporter: Reporter,
  profile: Profile,
  best: Best,
  requests: number,
  metrics: boolean,
): void {
  const result = runLab({ profile, requests, pace: { metrics } })
  const own = figuresOf(result)
  const others = isShared(profile) ? own.neighbour : 0
  const figures = { ...own, steady: own.steady + others, whole: own.whole + others }
  const falls = profile.servers.some(
    ({ thrashPast, kvCacheTokens }) => thrashPast !== undefined || kvCacheTokens !== undefined,
  )
  const steady = !metrics && falls ? 0.9 : 0.97
  const whole = !metrics && falls ? 0.9 : 0.95
  const misses = missesOf(figures, profile, best, { steady, whole })
  reporter.add({
    what: `${profile.name}, ${metrics ? 'with' : 'without'} /metrics`,
    ours: oursText(figures, best, {
      limit: secondsToLimit(result, best.band),
      rate: secondsTo95(result, best.steady),
    }),
    peer: bestText(best),
    ratio: figures.steady / best.steady,
    goal: {
      text: misses.length === 0 ? 'all' : misses.join(', '),
      holds: misses.length === 0,
    },
  })
}

/** What of the promises a run does not keep. */
function missesOf(
  figures: Figures,
  profile: Profile,
  best: Best,
  least: { steady: number; whole: number },
): string[] {
  const misses: string[] = []
  if (figures.steady < least.steady * best.steady) misses.push(`steady < ${least.steady}`)
  if (figures.whole < least.whole * best.whole) misses.push(`whole < ${least.whole}`)
  if (figures.firstToken > WAIT && best.nearly.firstToken < IDLE) misses.push('first token > 5 s')
  if (figures.timeouts > 0) misses.push('timeouts')
  if (figures.slow > 0 && best.nearly.slow === 0) misses.push(`${figures.slow} first tokens > 60 s`)
  const { capacity, speed } = profile
  const changes = capacity !== undefined || speed !== undefined || isShared(profile)
  // A limit that follows a capacity must swing.
  if (figures.swing > SWING && !changes) misses.push('swing > 0.2')
  const share = figures.neighbour / figures.steady
  if (isShared(profile) && (share < LEAST_SHARE || share > 1 - LEAST_SHARE)) misses.push('share')
  return misses
}

/** Seconds until the limit was found, and until the rate was there. */
interface Found {
  limit: number | undefined
  rate: number | undefined
}

function oursText(figures: Figures, best: Best, found: Found): string {
  const percent = (a: number, b: number): string => `${((100 * a) / b).toFixed(1)}`
  const other = best.nearly.neighbour
  // Of what it has beside the best, and of one of our own kind: of what both have.
  const theirs = percent(figures.neighbour, other > 0 ? other : figures.steady)
  const neighbour = figures.neighbour > 0 ? `, other ${theirs} %` : ''
  const throughput = `${percent(figures.steady, best.steady)}/${percent(figures.whole, best.whole)} %`
  const wait = `first token ${figures.firstToken.toFixed(2)} s`
  const swing = `swing ${figures.swing.toFixed(2)}`
  return `${throughput}, ${wait}, limit found after ${found.limit ?? 'never'} s, 95 % after ${found.rate ?? 'never'} s, ${swing}, limit ${figures.meanLimit.toFixed(0)}${neighbour}`
}

function bestText({ concurrency, nearly, steady }: Best): string {
  return `${concurrency}: ${steady.toFixed(0)} tokens/s, first token ${nearly.firstToken.toFixed(2)} s`
}
