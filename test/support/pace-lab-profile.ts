import type { PaceMetrics } from '../../src/core/pace-signals.ts'
import { lognormal, uniform } from '../../src/simulator/random.ts'
import type { SequenceSpec } from '../../src/simulator/sequence.ts'
import type { ServerSpec } from './pace-lab-server.ts'

const SECOND = 1000
/** Milliseconds from the end of one request to the next one's arrival. */
export const DISPATCH = 50
const ANSWERS = { mean: 1263, sigma: 0.9, longest: 8000 }
/** Streams of random numbers, apart from those of the answers' lengths. */
const PROMPTS = 7
const DELAYS = 23

/** What the client meets. */
export interface Profile {
  name: string
  servers: ServerSpec[]
  /** Prompts of the run where it is not the usual number. */
  requests?: number
  /** In the mean, uniform from half to one and a half of it; or by a number between 0 and 1. */
  promptTokens?: number | ((draw: number) => number)
  /** Lengths of the answers: lognormal, or by a number between 0 and 1; cut at the longest. */
  answers?: { longest: number } & (
    | { mean: number; sigma: number }
    | { of: (draw: number) => number }
  )
  /** Seconds (lognormal) that a request takes to the server, through a gateway. */
  delay?: { mean: number; sigma: number }
  /** Share of the slots and of the rate that is there, by the share of the run that is done. */
  capacity?: (done: number, second: number) => number
  /** Share of the rate alone, by the second of the run. */
  speed?: (second: number) => number
  /** Whether the servers are down (and have lost what they had), by the second of the run. */
  down?: (second: number) => boolean
  /**
   * Requests that another client has open at the first server all the time, or `auto` for one that
   * finds its pace as we do, from the second at which it begins.
   */
  neighbour?: number | { auto: number }
  /** Shares of the requests that never get a first token, and that get a 429 for no reason. */
  hung?: number
  refused?: number
  /** Seconds that a reply of /metrics is old when it is used, and what it makes of the truth. */
  metricsAge?: number
  told?: (truth: PaceMetrics) => PaceMetrics
}

/** The prompt of a number, and the length of its answer. */
export function sequenceOf(profile: Profile, seed: number, index: number): SequenceSpec {
  const { promptTokens = 200, answers = ANSWERS } = profile
  const draw = uniform(seed + PROMPTS, index)
  const prompt = typeof promptTokens === 'number' ? promptTokens * (0.5 + draw) : promptTokens(draw)
  const length =
    'of' in answers
      ? answers.of(uniform(seed, index))
      : lognormal(seed, index, answers.mean, answers.sigma)
  const outputTokens = Math.min(answers.longest, Math.max(1, Math.round(length)))
  return { promptTokens: Math.round(prompt), outputTokens }
}

/** Milliseconds from the sending of a prompt to its arrival at the server. */
export function delayOf({ delay }: Profile, seed: number, index: number): number {
  if (delay === undefined) return DISPATCH
  return DISPATCH + SECOND * lognormal(seed + DELAYS, index, delay.mean, delay.sigma)
}
