import { lognormal, uniform } from '../../src/simulator/random.ts'
import { Scheduler, type SchedulerOptions } from '../../src/simulator/scheduler.ts'
import type { Sequence, SequenceSpec } from '../../src/simulator/sequence.ts'

/** A server whose rate is the same for every batch and whose prefill is free: a pure queue. */
export const PURE_QUEUE: SchedulerOptions = {
  maxNumSeqs: 1_000_000,
  kvCacheTokens: 0,
  prefillTokensPerSecond: Number.POSITIVE_INFINITY,
  prefillChunk: 1_000_000,
  peakTokensPerSecond: 1_000,
  halfBatch: 0,
}

export type Sizes = 'exponential' | 'lognormal'

export interface OpenLoad {
  readonly seed: number
  readonly requests: number
  readonly meanTokens: number
  readonly sizes: Sizes
  /** Share of the rate `peakTokensPerSecond` that is asked for. */
  readonly load: number
}

export interface LoadResult {
  readonly scheduler: Scheduler
  readonly finished: Sequence[]
  /** Mean number of sequences in the system, counted at evenly spaced instants. */
  readonly meanInSystem: number
  /** Arrivals per millisecond. */
  readonly arrivalRate: number
  readonly endedAt: number
}

const SAMPLE_EVERY_MS = 97

/** Poisson arrivals with independent sizes, on virtual time, until all are served. */
export function runOpenLoad(options: SchedulerOptions, load: OpenLoad): LoadResult {
  const finished: Sequence[] = []
  const scheduler = new Scheduler(options, { finished: (sequence) => finished.push(sequence) })
  const meanGapMs = (1000 * load.meanTokens) / options.peakTokensPerSecond / load.load
  let now = 0
  let samples = 0
  let inSystem = 0
  for (let i = 0; i < load.requests; i++) {
    const arrival = now + exponential(load.seed, 2 * i, meanGapMs)
    for (; samples * SAMPLE_EVERY_MS < arrival; samples++) {
      scheduler.advance(samples * SAMPLE_EVERY_MS)
      inSystem += scheduler.running + scheduler.waiting
    }
    now = arrival
    scheduler.add({ promptTokens: 1, outputTokens: size(load, i) }, now)
  }
  const lastArrival = now
  const endedAt = drain(scheduler, now)
  return {
    scheduler,
    finished,
    meanInSystem: inSystem / samples,
    arrivalRate: load.requests / lastArrival,
    endedAt,
  }
}

/** Takes steps until nothing is left; returns when the last one ended. */
export function drain(scheduler: Scheduler, from: number): number {
  let now = from
  while (scheduler.nextStepAt !== undefined) {
    now = scheduler.nextStepAt
    scheduler.advance(now)
  }
  return now
}

/** A fixed number of clients, each sending the next request when its last one is finished. */
export function runClosedLoad(
  options: SchedulerOptions,
  clients: number,
  spec: SequenceSpec,
  untilMs: number,
): Scheduler {
  let toSend = clients
  const scheduler = new Scheduler(options, { finished: () => toSend++ })
  let now = 0
  while (now < untilMs) {
    for (; toSend > 0; toSend--) scheduler.add(spec, now)
    now = scheduler.nextStepAt!
    scheduler.advance(now)
  }
  return scheduler
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length
}

function size({ seed, meanTokens, sizes }: OpenLoad, index: number): number {
  const drawn =
    sizes === 'exponential'
      ? exponential(seed, 2 * index + 1, meanTokens)
      : lognormal(seed ^ 0x5bd1e995, index, meanTokens, 0.9)
  return Math.max(1, Math.round(drawn))
}

function exponential(seed: number, index: number, average: number): number {
  return -average * Math.log(1 - uniform(seed, index))
}
