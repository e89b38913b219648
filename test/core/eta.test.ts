import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { AnswerLengths } from '../../src/core/eta.ts'
import { dice } from '../support/dice.ts'

const RECORDS = 1000
const SLOTS = 64
const MEAN = 1263
const SEEDS = Array.from({ length: 16 }, (_, index) => index + 1)

type Draw = (random: () => number) => number

const LENGTHS: Record<string, Draw> = {
  exponential: (random) => -MEAN * Math.log(1 - random()),
  'log-normal 0.6': (random) => MEAN * Math.exp(0.6 * normal(random) - 0.18),
  'log-normal 0.9': (random) => MEAN * Math.exp(0.9 * normal(random) - 0.405),
}
/** Tokens a second of one stream, by the number that are open. */
const SPEEDS: Record<string, (open: number) => number> = {
  'half of its rate at 32 streams': (open) => 1000 / (open + 32),
  'streams that do not slow each other': () => 10,
}

function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
}

/** A run, and at some moments what was told beside what was true, in seconds. */
function virtualRun(draw: Draw, seed: number, speedOf: (open: number) => number, looks: number[]) {
  const random = dice(seed)
  const unsent = Array.from({ length: RECORDS }, () => Math.max(1, Math.round(draw(random))))
  const lengths = new AnswerLengths()
  const told: { at: number; eta: number | undefined }[] = []
  let open: { length: number; got: number }[] = []
  let now = 0
  for (let look = 0; ; ) {
    while (open.length < SLOTS && unsent.length > 0) open.push({ length: unsent.pop()!, got: 0 })
    if (open.length === 0) return { told, end: now }
    const speed = speedOf(open.length)
    const rest = Math.min(...open.map(({ length, got }) => length - got)) / speed
    const wait = Math.min(rest, (looks[look] ?? Number.POSITIVE_INFINITY) - now)
    now += wait
    for (const answer of open) answer.got += wait * speed
    if (now >= looks[look]!) {
      const came = open.map(({ got }) => got)
      const work = { unsent: unsent.length, open: came, speed, slots: open.length, most: SLOTS }
      const ms = lengths.timeLeft(work)
      told.push({ at: now, eta: ms === undefined ? ms : ms / 1000 })
      look++
    }
    for (const { length, got } of open) if (got >= length - 1e-6) lengths.add(length)
    open = open.filter(({ length, got }) => got < length - 1e-6)
  }
}

/** What was told at some shares of each run's time, as a part of what was true. */
function ratios(draw: Draw, speedOf: (open: number) => number, share: number): number[] {
  return SEEDS.map((seed) => {
    const { end } = virtualRun(draw, seed, speedOf, [])
    const { at, eta } = virtualRun(draw, seed, speedOf, [share * end]).told[0]!
    return eta! / (end - at)
  })
}

for (const [kind, draw] of Object.entries(LENGTHS)) {
  for (const [server, speedOf] of Object.entries(SPEEDS)) {
    describe(`the time left, lengths ${kind}, ${server}`, () => {
      // At 90 % a few of the longest answers are open: how long each goes on nobody knows.
      for (const [share, most] of [
        [0.25, 15],
        [0.5, 14],
        [0.75, 12],
        [0.9, 9],
      ] as const) {
        test(`at ${100 * share} % it is within a factor of two, for ${most} seeds of 16`, () => {
          const all = ratios(draw, speedOf, share)
          const near = all.filter((ratio) => ratio > 0.5 && ratio < 2)
          const text = all.map((ratio) => ratio.toFixed(2)).join(' ')
          assert.ok(near.length >= most, text)
          assert.ok(all.filter((ratio) => ratio < 1 / 3).length <= (share < 0.9 ? 2 : 3), text)
        })
      }
    })
  }
}

describe('the time left', () => {
  const work = { unsent: 0, open: [], speed: 10, slots: 10, most: 10 }

  test('is not told before anything is known, nor while nothing comes', () => {
    const lengths = new AnswerLengths()
    assert.equal(lengths.timeLeft({ ...work, unsent: 9 }), undefined)
    lengths.add(100)
    assert.equal(lengths.timeLeft({ ...work, unsent: 9, speed: 0 }), undefined)
    assert.equal(lengths.timeLeft({ ...work, unsent: 9, slots: 0 }), undefined)
    assert.equal(lengths.timeLeft(work), 0)
  })

  test('of answers of one length is what they have to come', () => {
    for (const length of [256, 300]) {
      const lengths = new AnswerLengths()
      for (let count = 0; count < 5000; count++) lengths.add(length)
      const one = { speed: 1, slots: 1, most: 1 }
      const seconds = lengths.timeLeft({ ...one, unsent: 0, open: [100] })! / 1000
      assert.ok(Math.abs(seconds / (length - 100) - 1) < 0.25, `${length}: ${seconds}`)
      const many = lengths.timeLeft({ ...one, unsent: 100, open: [] })! / 1000
      assert.ok(Math.abs(many / (100 * length) - 1) < 0.2, `${length}: ${many}`)
      assert.ok(lengths.timeLeft({ ...one, unsent: 0, open: [10 * length] })! < 10_000 * length)
    }
  })

  test('grows with what an answer has brought, where lengths have a long tail', () => {
    const lengths = new AnswerLengths()
    const random = dice(5)
    for (let count = 0; count < 2000; count++) lengths.add(LENGTHS['log-normal 0.9']!(random))
    const of = (got: number) => lengths.timeLeft({ ...work, open: [got], slots: 1, most: 1 })!
    assert.ok(of(MEAN) < of(4 * MEAN) && of(4 * MEAN) < of(12 * MEAN))
  })
})
