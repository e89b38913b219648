import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { AnswerSample } from '../../src/core/answer-sample.ts'
import { advice } from '../../src/core/report-advice.ts'
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
