import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { resolveOptions } from '../../src/simulator/options.ts'
import { lognormal, uniform } from '../../src/simulator/random.ts'
import { Scheduler } from '../../src/simulator/scheduler.ts'
import type { Sequence } from '../../src/simulator/sequence.ts'
import { mean } from './virtual-load.ts'

/** What the run told that started this project. */
const TOLD = { seconds: 5945, done: 2680, timedOut: 222, meanKept: 1263 }
const CONCURRENCY = 200
const TIMEOUT = 600_000
/** Milliseconds between two looks at the clock. */
const STEP = 100

/** The story's client on virtual time: so many at once, each given up after a total timeout. */
function runStory(seed: number): { kept: number[]; timedOut: number } {
  const settings = resolveOptions({ profile: 'story' })
  const { meanTokens, lengthSigma, maxTokens } = settings
  const kept: number[] = []
  const open = new Map<Sequence, number>()
  let toSend = CONCURRENCY
  let [sent, timedOut] = [0, 0]
  const scheduler = new Scheduler(settings, {
    finished: (sequence) => {
      kept.push(sequence.outputTokens)
      open.delete(sequence)
      toSend++
    },
  })
  for (let now = 0; now < 1000 * TOLD.seconds; now += STEP) {
    for (const [sequence, until] of open) {
      if (until > now) break
      scheduler.abort(sequence, now)
      open.delete(sequence)
      timedOut++
      toSend++
    }
    for (; toSend > 0; toSend--, sent++) {
      const drawn = Math.round(lognormal(seed, sent, meanTokens, lengthSigma))
      const outputTokens = Math.min(maxTokens, Math.max(1, drawn))
      const promptTokens = Math.round(100 + 200 * uniform(seed + 1, sent))
      open.set(scheduler.add({ promptTokens, outputTokens }, now), now + TIMEOUT)
    }
    scheduler.advance(now + STEP)
  }
  return { kept, timedOut }
}

describe('the profile of the starting story', () => {
  it('loses what the story lost, because requests queue', () => {
    const runs = [1, 2, 3, 4].map(runStory)
    const done = mean(runs.map(({ kept }) => kept.length))
    const timedOut = mean(runs.map((run) => run.timedOut))
    const meanKept = mean(runs.flatMap(({ kept }) => kept))
    near('done', done, TOLD.done, 0.05)
    near('mean kept', meanKept, TOLD.meanKept, 0.05)
    near('lost', timedOut / (timedOut + done), TOLD.timedOut / (TOLD.timedOut + TOLD.done), 0.15)
  })
})

function near(what: string, value: number, told: number, share: number): void {
  assert.ok(Math.abs(value / told - 1) <= share, `${what}: ${value}, told ${told}`)
}
