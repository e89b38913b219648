import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AnswerSample } from '../../src/core/answer-sample.ts'
import { advice } from '../../src/core/report-advice.ts'
import { reportText } from '../../src/core/report-text.ts'
import { RunReport } from '../../src/core/run-report.ts'
import { dice } from '../support/dice.ts'

const START = Date.UTC(2026, 0, 5)
const SLOTS = 64

function sample(startedAt: number, firstTokenMs: number, totalMs: number): AnswerSample {
  return {
    finishReason: 'stop',
    isEmpty: false,
    attempts: 1,
    promptTokens: 10,
    completionTokens: Math.round((totalMs - firstTokenMs) / 100),
    reasoningTokens: 0,
    chars: 100,
    reasoningChars: 0,
    startedAt,
    firstTokenMs,
    totalMs,
    longestMs: totalMs,
  }
}

/** Answers of a run against a server that works at 64 of those that are open. */
function answers(records: number, concurrency: number, from = START): AnswerSample[] {
  const random = dice(concurrency)
  const seats = Array.from({ length: SLOTS }, () => from)
  const lanes = Array.from({ length: concurrency }, () => from)
  return Array.from({ length: records }, () => {
    const lane = lanes.indexOf(Math.min(...lanes))
    const seat = seats.indexOf(Math.min(...seats))
    const sentAt = lanes[lane]!
    const begins = Math.max(sentAt, seats[seat]!)
    const end = begins + 300 - 60_000 * Math.log(1 - random())
    lanes[lane] = end
    seats[seat] = end
    return sample(sentAt, begins + 300 - sentAt, end - sentAt)
  })
}

function reported(samples: readonly AnswerSample[]) {
  const report = new RunReport()
  for (const one of samples) report.answer(one)
  return report.toJSON()
}

describe('the advice on concurrency', () => {
  for (const concurrency of [80, 128, 200]) {
    test(`of a run with ${concurrency} is what the server works at, 64`, () => {
      const report = reported(answers(1000, concurrency))
      const line = advice(report).find((text) => text.startsWith('--concurrency'))!
      const [, next, open, queued, rest] =
        /: (\d+) or auto\..* nothing: ([\d.]+) - ([\d.]+) = ([\d.]+)\.$/.exec(line)!.map(Number)
      assert.ok(Math.abs(next! - SLOTS) <= 0.15 * SLOTS, line)
      assert.ok(Math.abs(open! - queued! - rest!) < 0.11 && Math.abs(rest! - next!) <= 0.51, line)
    })
  }

  test('of a run without a queue is that more may be faster', () => {
    const report = reported(answers(1000, 48))
    const line = advice(report).find((text) => text.startsWith('--concurrency'))!
    assert.match(line, /4[5-8]\.\d were open, \d\.\d of them waited .*: no long queue, more may/)
  })
})

describe('a run that was stopped and went on', () => {
  const DAYS = 2 * 86_400_000
  const once = reported(answers(1000, 48))
  const first = answers(500, 48)
  const second = answers(500, 48, START + DAYS)

  for (const [name, samples] of [
    ['in order', [...first, ...second]],
    ['the other way round', [...second, ...first].toReversed()],
  ] as const) {
    test(`two days later: the pause is no time of it, ${name}`, () => {
      const twice = reported(samples)
      assert.equal(twice.parts, 2)
      assert.ok(Math.abs(twice.seconds! + twice.paused_seconds - 172_800) < 2000)
      // Two ramps and two tails make it longer, and nothing else does.
      assert.ok(twice.seconds! < 1.5 * once.seconds!, `${twice.seconds}`)
      assert.ok(twice.requests_per_second! > once.requests_per_second! / 1.5)
      assert.ok(twice.mean_open! > 30)
      assert.ok(twice.over_time.bin_s <= once.over_time.bin_s)
      const report = { ...twice, advice: advice(twice) }
      assert.match(
        reportText(report),
        /^Wall time .* in 2 parts: pauses of 47 h \d+ m are left out$/m,
      )
    })
  }

  test('half a minute without a request is time of the run, with its empty bins', () => {
    const report = reported([sample(START, 100, 5000), sample(START + 35_000, 100, 5000)])
    assert.deepEqual([report.seconds, report.parts, report.paused_seconds], [40, 1, 0])
    assert.ok(report.over_time.bins.length >= 40)
  })

  test('times that no run has take no memory', () => {
    const random = dice(3)
    const wild = Array.from({ length: 3000 }, () => sample(random() * 8e15, 1, random() * 1e12))
    const report = reported([...wild, sample(-8e15, 1, 8e15)])
    assert.ok(report.over_time.bins.length <= 200 && report.parts <= 1000)
  })
})
