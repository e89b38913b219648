import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { runLab } from '../support/pace-lab.ts'
import { FURTHER } from '../support/pace-lab-further.ts'
import type { Profile } from '../support/pace-lab-profile.ts'
import { figuresOf } from '../support/pace-lab-report.ts'

const REQUESTS = 2500

/** Profiles, the best fixed concurrency of a sweep, and the least share of its throughput. */
const PROMISES: { name: string; best: number; least?: number }[] = [
  { name: 'knee 12', best: 14 },
  { name: '429 above 20', best: 20 },
  { name: '429 above 20, Retry-After', best: 20 },
  { name: 'a fifth for 2 min, thrice', best: 100, least: 0.95 },
  { name: 'restarted, 30 s down', best: 64 },
  { name: 'cached prefixes', best: 96 },
  { name: '2 tokens a second', best: 48 },
  { name: 'Pareto', best: 64 },
  { name: '400 requests', best: 64 },
  { name: 'a gateway of 3 s', best: 72 },
  { name: 'jitter', best: 66 },
  { name: 'two in a hundred hang', best: 64 },
  { name: '429 by chance', best: 64 },
  { name: 'long prompts among short ones', best: 64, least: 0.8 },
]

describe('profiles that the controller was not made with', () => {
  for (const { name, best, least = 0.97 } of PROMISES) {
    const profile = furtherOf(name)
    const requests = Math.min(REQUESTS, profile.requests ?? REQUESTS)
    const fixed = figuresOf(runLab({ profile, requests, pace: { fixed: best } }))
    for (const metrics of [true, false]) {
      test(`${name}, ${metrics ? 'with' : 'without'} metrics`, () => {
        const figures = figuresOf(runLab({ profile, requests, pace: { metrics } }))
        const share = figures.steady / fixed.steady
        assert.ok(share >= least, `${(100 * share).toFixed(1)} % of the best`)
        assert.equal(figures.timeouts, 0)
      })
    }
  }
})

/** 40 requests of 1,263 tokens in the mean. */
const ALLOWED = (40 * 1263) / 60

for (const name of ['40 a minute, headers', '40 a minute, Retry-After']) {
  test(`${name}: what is allowed is used, and few are refused`, () => {
    const profile = furtherOf(name)
    const { steady, refusals } = figuresOf(
      runLab({ profile, requests: 1000, pace: { metrics: false } }),
    )
    assert.ok(steady > 0.93 * ALLOWED, `${steady} of ${ALLOWED} tokens/s`)
    assert.ok(refusals < 500, `${refusals} of 1,000 refused`)
  })
}

function furtherOf(name: string): Profile {
  const profile = FURTHER.find((one) => one.name === name)
  if (profile === undefined) throw new Error(`no such profile: ${name}`)
  return profile
}
