import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PaceController } from '../../src/core/pace.ts'
import { type LabResult, runLab } from '../support/pace-lab.ts'
import { profileOf } from '../support/pace-lab-profiles.ts'
import { figuresOf, secondsToLimit } from '../support/pace-lab-report.ts'

const REQUESTS = 5000

describe('two clients that find their pace, at one server', () => {
  const fixed = runLab({ profile: profileOf('knee 64'), requests: 2500, pace: { fixed: 64 } })
  const alone = figuresOf(fixed).steady
  for (const name of ['two of us', 'another of us comes']) {
    for (const metrics of [true, false]) {
      test(`${name}, ${metrics ? 'with' : 'without'} metrics`, () => {
        const profile = profileOf(name)
        const result = runLab({ profile, requests: REQUESTS, pace: { metrics } })
        const { ours, theirs } = secondHalf(result)
        const share = ours / (ours + theirs)
        assert.ok(share > 0.3 && share < 0.7, `${(100 * share).toFixed(0)} % for one of two`)
        assert.ok(ours + theirs > 0.97 * alone, `${ours + theirs} tokens/s instead of ${alone}`)
        assert.ok(figuresOf(result).firstToken < 5)
        assert.equal(result.timeouts, 0)
      })
    }
  }
})

test('a search that begins late is no less a search', () => {
  const pace = new PaceController(2048)
  // The zero of the clock is long ago: the first record came late.
  for (let second = 600; second < 660; second++) {
    const now = 1000 * second
    const nothing = { unstarted: 0, unstreamed: 0, metrics: undefined, tokens: undefined }
    pace.second({ ...nothing, now, open: pace.limit, exhausted: false })
  }
  assert.ok(pace.limit > 1000, `still at ${pace.limit} after a minute`)
})

test('a request now and then that waits is no queue', () => {
  const pace = new PaceController(2048)
  pace.limit = 6
  // Not beyond 5 for five minutes, so that only a cut can move the limit.
  for (let refused = 0; refused < 3; refused++) pace.limited(5)
  const limits = new Set<number>()
  for (let second = 1; second < 300; second++) {
    if (second % 8 === 0) pace.signals.firstToken(2000)
    const waiting = second % 8 < 6 ? 1 : 0
    const metrics = { waiting, kvUse: 0, preemptions: 0 }
    const now = 1000 * second
    const open = second === 1 ? 6 : 5
    pace.second({
      now,
      open,
      unstarted: waiting,
      unstreamed: 0,
      metrics,
      tokens: undefined,
      exhausted: false,
    })
    limits.add(pace.limit)
  }
  assert.deepEqual([...limits], [5])
})

test('where more gains nothing: soon at the best, and then the limit hardly moves', () => {
  const profile = profileOf('no knee')
  for (const seed of [2, 4]) {
    const best = figuresOf(runLab({ profile, requests: 10_000, seed, pace: { fixed: 1448 } }))
    const result = runLab({ profile, requests: 10_000, seed, pace: { metrics: true } })
    const { swing, steady } = figuresOf(result)
    assert.ok(swing <= 0.2, `it swings by ${swing}`)
    assert.ok(steady > 0.97 * best.steady, `${steady} tokens/s instead of ${best.steady}`)
    const reached = secondsToLimit(result, { low: 479, high: 2048 })
    assert.ok(reached !== undefined && reached <= 60, `found after ${reached} s`)
  }
})

function secondHalf({ seconds, exhaustedAt }: LabResult): { ours: number; theirs: number } {
  const sent = seconds.filter(({ at }) => at <= exhaustedAt)
  const from = sent[Math.floor(sent.length / 2)]!
  const to = sent.at(-1)!
  const time = (to.at - from.at) / 1000
  return {
    ours: (to.tokens - from.tokens) / time,
    theirs: (to.neighbour - from.neighbour) / time,
  }
}
