import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { PaceController } from '../../src/core/pace.ts'
import { FirstTokenFloor } from '../../src/core/pace-floor.ts'
import type { PaceMetrics, PaceView } from '../../src/core/pace-signals.ts'
import { runLab } from '../support/pace-lab.ts'
import { FURTHER } from '../support/pace-lab-further.ts'
import type { Profile } from '../support/pace-lab-profile.ts'
import { profileOf } from '../support/pace-lab-profiles.ts'
import { figuresOf, secondsTo95, secondsToLimit } from '../support/pace-lab-report.ts'

const REQUESTS = 2500

/** Profiles, and the best fixed concurrency that `bench/pace.ts` found for them. */
const PROMISES: { name: string; best: number; steady: number; whole: number }[] = [
  { name: 'knee 8', best: 8, steady: 0.97, whole: 0.95 },
  { name: 'knee 64', best: 64, steady: 0.97, whole: 0.95 },
  { name: 'knee 256', best: 256, steady: 0.97, whole: 0.95 },
  { name: '429 above 50', best: 50, steady: 0.97, whole: 0.95 },
  { name: 'thrash past 90 of 400', best: 90, steady: 0.9, whole: 0.9 },
  { name: 'KV preemption', best: 64, steady: 0.93, whole: 0.93 },
  { name: 'halved and given back', best: 64, steady: 0.95, whole: 0.95 },
  { name: 'two endpoints 1:3', best: 192, steady: 0.97, whole: 0.95 },
  { name: "the story's server", best: 256, steady: 0.97, whole: 0.95 },
  { name: 'long prompts', best: 128, steady: 0.95, whole: 0.93 },
  { name: 'prompts of 8,000', best: 64, steady: 0.97, whole: 0.95 },
  { name: 'heavy tail', best: 64, steady: 0.97, whole: 0.95 },
  { name: 'metrics 5 s old', best: 64, steady: 0.97, whole: 0.95 },
  { name: "another model's queue", best: 64, steady: 0.97, whole: 0.95 },
  { name: 'a queue that is not told', best: 64, steady: 0.97, whole: 0.95 },
  { name: 'a gauge that stands still', best: 64, steady: 0.97, whole: 0.95 },
]

describe('in the laboratory, against the best fixed concurrency', () => {
  for (const { name, best, steady, whole } of PROMISES) {
    const profile = profileOf(name)
    const fixed = figuresOf(runLab({ profile, requests: REQUESTS, pace: { fixed: best } }))
    for (const metrics of [true, false]) {
      test(`${name}, ${metrics ? 'with' : 'without'} metrics`, () => {
        const result = runLab({ profile, requests: REQUESTS, pace: { metrics } })
        const figures = figuresOf(result)
        atLeast('steady throughput', figures.steady / fixed.steady, steady)
        atLeast('whole throughput', figures.whole / fixed.whole, whole)
        assert.ok(figures.firstToken < 5, `the median first token takes ${figures.firstToken} s`)
        assert.equal(figures.timeouts, 0)
        const reached = secondsTo95(result, fixed.steady)
        assert.ok(reached !== undefined && reached <= 100, `95 % after ${reached} s`)
      })
    }
  }

  // Bands as the sweep of bench/pace.ts finds them: 95 % of the best, and no long queue.
  for (const [name, low, high] of [
    ['knee 1,024', 825, 1088],
    ['thrash past 90 of 400', 75, 94],
    ['long prompts', 101, 136],
    ['prompts of 8,000', 39, 71],
    ["the story's server", 174, 258],
    ['no knee', 479, 2048],
  ] as const) {
    for (const metrics of [true, false]) {
      test(`${name}, ${metrics ? 'with' : 'without'} metrics: the limit is found in a minute`, () => {
        for (const seed of [2, 5]) {
          const profile = profileOf(name)
          const result = runLab({ profile, requests: REQUESTS, seed, pace: { metrics } })
          const found = secondsToLimit(result, { low, high })
          assert.ok(found !== undefined && found <= 60, `after ${found} s with seed ${seed}`)
        }
      })
    }
  }

  test('a cache that is still filling: the limit that ends the ramp stays', () => {
    for (const seed of [1, 2, 5]) {
      const options = { profile: profileOf('KV preemption'), requests: REQUESTS, seed }
      const result = runLab({ ...options, pace: { metrics: true } })
      const found = secondsToLimit(result, { low: 53, high: 81 })
      assert.ok(found !== undefined && found <= 60, `after ${found} s with seed ${seed}`)
    }
  })

  test('a cache of few long answers: the limit does not follow their noise', () => {
    const profile = FURTHER.find(({ name }) => name === 'rtx4090-7b')!
    const options = { profile, requests: 6000, seed: 2 }
    const fixed = figuresOf(runLab({ ...options, pace: { fixed: 32 } }))
    for (const metrics of [true, false]) {
      const figures = figuresOf(runLab({ ...options, pace: { metrics } }))
      atLeast('steady throughput', figures.steady / fixed.steady, 0.97)
      assert.ok(figures.swing < 0.2, `the limit swings by ${figures.swing}`)
    }
  })

  test('first tokens that waver are no queue of another client', () => {
    const profile = FURTHER.find(({ name }) => name === 'jitter')!
    for (const metrics of [true, false]) {
      const { swing } = figuresOf(runLab({ profile, requests: 10_000, pace: { metrics } }))
      assert.ok(swing < 0.2, `the limit swings by ${swing}`)
    }
  })

  test('looks that do better by chance do not follow one another down by more than a fifth', () => {
    const options = { profile: profileOf('prompts of 8,000'), requests: 10_000, seed: 7 }
    const { swing } = figuresOf(runLab({ ...options, pace: { metrics: true } }))
    assert.ok(swing < 0.2, `the limit swings by ${swing}`)
  })

  test('a limit of requests a minute is none of open ones: nothing is looked for while it holds', () => {
    for (const name of ['40 a minute, headers', '40 a minute, Retry-After']) {
      const profile = FURTHER.find((one) => one.name === name)!
      const options = { profile, requests: 3000, seed: 3 }
      const fixed = figuresOf(runLab({ ...options, pace: { fixed: 64 } }))
      const figures = figuresOf(runLab({ ...options, pace: { metrics: true } }))
      atLeast('steady throughput', figures.steady / fixed.steady, 0.97)
      assert.ok(figures.swing < 0.1, `the limit swings by ${figures.swing}`)
    }
  })

  test('answers that come whole: the metrics alone tell, or the default stands', () => {
    for (const [name, best] of [
      ['knee 8', 8],
      ['knee 64', 64],
      ['knee 256', 256],
      ["the story's server", 256],
    ] as const) {
      const options = { profile: profileOf(name), requests: REQUESTS }
      const fixed = figuresOf(runLab({ ...options, pace: { fixed: best } }))
      const told = figuresOf(runLab({ ...options, pace: { metrics: true, unstreamed: true } }))
      atLeast(`${name}, steady`, told.steady / fixed.steady, 0.97)
      atLeast(`${name}, whole`, told.whole / fixed.whole, 0.9)
      assert.ok(told.firstToken < 5, `${name}: the median first token takes ${told.firstToken} s`)
      const blind = runLab({ ...options, pace: { metrics: false, unstreamed: true } })
      assert.equal(blind.seconds.at(-1)!.limit, 128)
    }
  })

  test('from any start', () => {
    const profile = profileOf('knee 64')
    const fixed = figuresOf(runLab({ profile, requests: REQUESTS, pace: { fixed: 64 } }))
    for (const start of [4, 16, 64, 128, 512]) {
      const options = { profile, requests: REQUESTS, pace: { start, metrics: false } }
      const figures = figuresOf(runLab(options))
      atLeast(`from ${start}`, figures.steady / fixed.steady, 0.97)
      assert.equal(figures.timeouts, 0)
    }
  })

  test('where throughput falls past the knee, also from a high start', () => {
    const profile = profileOf('thrash past 90 of 400')
    const fixed = figuresOf(runLab({ profile, requests: 10_000, pace: { fixed: 90 } }))
    const pace = { start: 512, metrics: false }
    const figures = figuresOf(runLab({ profile, requests: 10_000, pace }))
    atLeast('steady', figures.steady / fixed.steady, 0.97)
    atLeast('whole', figures.whole / fixed.whole, 0.95)
    assert.ok(figures.swing <= 0.2, `swing ${figures.swing}`)
  })

  test('the limit swings by at most a fifth', () => {
    for (const name of ['knee 8', 'knee 64', '429 above 50', 'long prompts']) {
      for (const metrics of [true, false]) {
        const options = { profile: profileOf(name), requests: 5000, pace: { metrics } }
        const { swing } = figuresOf(runLab(options))
        assert.ok(swing <= 0.2, `${name}: ${swing}`)
      }
    }
  })

  test('leaves another client what it has', () => {
    const profile = profileOf('beside 64 fixed')
    const fixed = figuresOf(runLab({ profile, requests: REQUESTS, pace: { fixed: 192 } }))
    const figures = figuresOf(runLab({ profile, requests: REQUESTS, pace: { metrics: true } }))
    atLeast('the other client', figures.neighbour / fixed.neighbour, 0.95)
    atLeast('ours', figures.steady / fixed.steady, 0.97)
  })

  test('never goes beyond its maximum, nor below one', () => {
    const profile: Profile = { name: 'one', servers: [{ slots: 1, peak: 100, half: 0 }] }
    const { seconds } = runLab({ profile, requests: 100, pace: { metrics: false, max: 3 } })
    assert.ok(seconds.every(({ limit }) => limit >= 1 && limit <= 3))
  })
})

describe('single rules', () => {
  test('a 429 cuts to what was open beside it, never from the limit', () => {
    const pace = controllerAt(100)
    refuse(pace, 60)
    pace.second(view({ now: 1000, open: 60 }))
    assert.equal(pace.limit, 60)
    refuse(pace, 58)
    pace.second(view({ now: 2000, open: 60 }))
    assert.equal(pace.limit, 60, 'one cut in three seconds')
  })

  test('the server that refuses the 21st request has 20', () => {
    const pace = controllerAt(21)
    refuse(pace, 20)
    pace.second(view({ now: 1000, open: 20 }))
    assert.equal(pace.limit, 20)
  })

  test('429 that go on cut deeper, also where what is refused is sent again at once', () => {
    const pace = controllerAt(100)
    const limits = [1000, 4000, 7000, 10_000].map((now) => {
      refuse(pace, pace.limit - 1)
      pace.second(view({ now, open: pace.limit }))
      return pace.limit
    })
    assert.deepEqual(limits, [99, 97, 93, 85])
  })

  test('429 while most requests beside as many are taken are not of their number', () => {
    const pace = controllerAt(100)
    for (let second = 1; second <= 60; second++) {
      for (let i = 0; i < 6; i++) pace.taken(99)
      pace.limited(99)
      pace.second(view({ now: 1000 * second, open: 99 }))
    }
    assert.ok(pace.limit >= 100, `${pace.limit}`)
  })

  test('429 and first-token timeouts count also while the metrics are stale', () => {
    const pace = controllerAt(100)
    refuse(pace, 60)
    pace.second(view({ now: 1000, open: 60, metrics: 'stale' }))
    assert.equal(pace.limit, 60)
    pace.firstTokenTimeout()
    pace.second(view({ now: 60_000, open: 60, metrics: 'stale' }))
    assert.equal(pace.limit, 48)
  })

  test('a 429 long after the limit has risen is not of the number of requests, unless it goes on', () => {
    const pace = controllerAt(100)
    const refuseAt = (now: number): number => {
      refuse(pace, 40)
      pace.second(view({ now, open: 40 }))
      return pace.limit
    }
    // A minute's requests are used up, once a minute.
    assert.deepEqual([60_000, 120_001, 180_002].map(refuseAt), [100, 100, 100])
    assert.deepEqual([240_003, 250_003, 260_003, 270_003].map(refuseAt), [100, 100, 100, 85])
  })

  test('a high start is begun low', () => {
    assert.equal(new PaceController(2048, 512).limit, 4)
    assert.equal(new PaceController(2048, 2).limit, 2)
    assert.equal(new PaceController(3, 512).limit, 3)
  })

  test('a cut never raises the limit', () => {
    const pace = controllerAt(10)
    pace.firstTokenTimeout()
    pace.second(view({ now: 1000, open: 100 }))
    assert.equal(pace.limit, 10)
  })

  test('a first-token timeout goes below what has started', () => {
    const pace = controllerAt(100)
    pace.firstTokenTimeout()
    pace.second(view({ now: 1000, open: 100, unstarted: 50 }))
    assert.equal(pace.limit, 40)
  })

  test('what waits is taken off at once, and while that drains nothing happens', () => {
    const pace = controllerAt(100)
    const waiting = { open: 100, unstarted: 60, metrics: metrics({ waiting: 60 }) }
    seconds(pace, 1, 5, waiting)
    assert.equal(pace.limit, 100, 'not before the server has taken any')
    pace.signals.admitted()
    seconds(pace, 1, 5, waiting)
    const { limit, reason } = pace
    assert.ok(limit >= 40 && limit <= 45, String(limit))
    assert.equal(reason, '60 waiting at the server')
    seconds(pace, 6, 60, waiting)
    assert.equal(pace.limit, limit)
  })

  test('steers by its own part of what waits, not by the total', () => {
    const pace = controllerAt(100)
    seconds(pace, 1, 5, { open: 100, metrics: metrics({ waiting: 500 }) })
    assert.ok(pace.limit >= 100)
  })

  test('input that is exhausted and metrics that are stale freeze it', () => {
    for (const still of [{ exhausted: true }, { metrics: 'stale' as const }]) {
      const pace = controllerAt(100)
      seconds(pace, 1, 60, { open: 100, unstarted: 90, ...still })
      assert.equal(pace.limit, 100)
    }
  })

  test('does not grow while fewer requests are open than allowed', () => {
    const pace = controllerAt(100)
    seconds(pace, 1, 60, { open: 50 })
    assert.equal(pace.limit, 100)
  })

  test('many preemptions in a minute cut, few do not', () => {
    for (const [preemptions, limit] of [
      [5, 100],
      [60, 100],
      [70, 93],
    ] as const) {
      const pace = controllerAt(100, 100)
      seconds(pace, 1, 20, { open: 100, metrics: metrics({ preemptions: 0 }) })
      for (let i = 0; i < 30; i++) pace.completed(10_000)
      pace.second(view({ now: 21_000, open: 100, metrics: metrics({ preemptions }) }))
      assert.equal(pace.limit, limit)
    }
  })

  test('preemptions go on for three minutes: a smaller number cuts', () => {
    for (const [each, limit] of [
      [0.5, 100],
      [0.7, 97],
    ] as const) {
      const pace = controllerAt(100, 100)
      for (let second = 1; second <= 170; second++) {
        pace.completed(100_000)
        const told = { preemptions: Math.round(each * second), kvUse: 0.85 + 0.01 * (second % 2) }
        seconds(pace, second, second, { open: 100, metrics: metrics(told) })
      }
      assert.equal(pace.limit, limit)
    }
  })

  test('the floor is forgotten after a while, so that a slower server is followed', () => {
    const floor = new FirstTokenFloor()
    assert.equal(floor.value, Number.POSITIVE_INFINITY)
    for (let minute = 0; minute < 90; minute++) {
      floor.advance(minute * 60_000)
      for (let i = 0; i < 5; i++) floor.add(minute < 30 ? 100 : 400)
      if (minute < 60) assert.equal(floor.value, 100)
    }
    assert.equal(floor.value, 400)
  })
})

/** A controller that has found a limit. */
function controllerAt(limit: number, max = 2048): PaceController {
  const pace = new PaceController(max)
  pace.limit = limit
  return pace
}

function atLeast(what: string, value: number, least: number): void {
  assert.ok(
    value >= least,
    `${what}: ${(100 * value).toFixed(1)} % of the best fixed concurrency's`,
  )
}

function view(part: Partial<PaceView>): PaceView {
  const nothing = {
    now: 0,
    open: 0,
    unstarted: 0,
    unstreamed: 0,
    metrics: undefined,
    tokens: undefined,
  }
  return { ...nothing, exhausted: false, ...part }
}

function metrics(part: Partial<PaceMetrics>): PaceMetrics {
  return { waiting: 0, kvUse: 0, preemptions: 0, ...part }
}

function seconds(pace: PaceController, from: number, to: number, part: Partial<PaceView>): void {
  for (let second = from; second <= to; second++) {
    pace.second(view({ ...part, now: second * 1000 }))
  }
}

/** Refuses requests: one alone would tell nothing. */
function refuse(pace: PaceController, others: number): void {
  for (let times = 0; times < 3; times++) pace.limited(others)
}
