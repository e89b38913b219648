import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { mean, type OpenLoad, PURE_QUEUE, runClosedLoad, runOpenLoad } from './virtual-load.ts'

const LOAD: OpenLoad = {
  seed: 7,
  requests: 150_000,
  meanTokens: 200,
  sizes: 'exponential',
  load: 0.7,
}

function assertWithin(share: number, actual: number, expected: number): void {
  const error = Math.abs(actual / expected - 1)
  assert.ok(error <= share, `${actual} is ${(100 * error).toFixed(1)} % off ${expected}`)
}

describe('scheduler against queueing theory', () => {
  for (const sizes of ['exponential', 'lognormal'] as const) {
    for (const load of [0.5, 0.8]) {
      it(`processor sharing: mean sojourn = service / (1 - load) (${sizes}, ${load})`, () => {
        const { finished } = runOpenLoad(PURE_QUEUE, { ...LOAD, sizes, load })
        const sojourn = mean(finished.map((s) => s.finishedAt! - s.arrivedAt))
        const service = mean(finished.map((s) => s.outputTokens)) // ms, at 1,000 tokens/s
        const asked = load * (service / LOAD.meanTokens)
        assertWithin(0.05, sojourn, service / (1 - asked))
      })
    }
  }

  it('processor sharing is fair: the sojourn is proportional to the size', () => {
    const { finished } = runOpenLoad(PURE_QUEUE, LOAD)
    for (const [from, to] of [
      [50, 100],
      [200, 300],
      [500, 1000],
    ] as const) {
      const some = finished.filter((s) => s.outputTokens >= from && s.outputTokens < to)
      const stretch = mean(some.map((s) => (s.finishedAt! - s.arrivedAt) / s.outputTokens))
      assertWithin(0.05, stretch, 1 / (1 - LOAD.load))
    }
  })

  for (const maxNumSeqs of [4, 1_000_000]) {
    it(`Little's law: number in system = arrival rate x sojourn (${maxNumSeqs} at once)`, () => {
      const result = runOpenLoad({ ...PURE_QUEUE, maxNumSeqs }, LOAD)
      const sojourn = mean(result.finished.map((s) => s.finishedAt! - s.arrivedAt))
      assertWithin(0.05, result.meanInSystem, result.arrivalRate * sojourn)
    })
  }

  for (const maxNumSeqs of [1, 16, 1_000_000]) {
    it(`work conservation: overloaded, it is never idle (${maxNumSeqs} at once)`, () => {
      const load = { ...LOAD, requests: 5_000, load: 1.5 }
      const { scheduler, endedAt } = runOpenLoad({ ...PURE_QUEUE, maxNumSeqs }, load)
      assertWithin(0.05, scheduler.generatedTokens, endedAt) // 1 token/ms
    })
  }

  it('work conservation: the busy share is the load', () => {
    const result = runOpenLoad(PURE_QUEUE, LOAD)
    const asked = mean(result.finished.map((s) => s.outputTokens)) * result.arrivalRate
    assertWithin(0.05, result.scheduler.generatedTokens / result.endedAt, asked)
  })

  for (const clients of [1, 8, 32, 128]) {
    it(`the decode rate saturates with the batch: peak x B / (B + half) at ${clients}`, () => {
      const options = { ...PURE_QUEUE, halfBatch: 32 }
      const spec = { promptTokens: 1, outputTokens: 500 }
      const until = 600_000
      const scheduler = runClosedLoad(options, clients, spec, until)
      const rate = (1000 * scheduler.generatedTokens) / until
      assertWithin(0.05, rate, (1_000 * clients) / (clients + 32))
    })
  }

  it('prefill takes its time from everybody', () => {
    const options = { ...PURE_QUEUE, halfBatch: 32, prefillTokensPerSecond: 10_000 }
    const spec = { promptTokens: 5_000, outputTokens: 500 }
    const until = 600_000
    const scheduler = runClosedLoad(options, 16, spec, until)
    // Each answer costs 0.5 s of prefill and 500 steps of (16 + 32) / 1000 s shared by 16.
    const perAnswer = 0.5 + (500 * 0.048) / 16
    assertWithin(0.05, scheduler.generatedTokens / 500, until / 1000 / perAnswer)
  })
})
