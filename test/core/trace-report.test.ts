import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TraceReader, type TraceReport } from '../../src/core/trace-report.ts'

type State = Record<string, unknown>

/** Reads states of which each tells its second. */
function traced(states: readonly ({ second: number } & State)[]): TraceReport {
  const reader = new TraceReader()
  for (const { second, ...state } of states) {
    const time = new Date(Date.UTC(2026, 0, 5, 10, 0, second)).toISOString()
    assert.ok(reader.add({ time, ...state }, 0))
  }
  return reader.toJSON()
}

describe('of several servers each move counts with its own reason', () => {
  const FREE = 'no queue at the server'
  const FULL = '12 preemptions a minute'
  const server = (url: string, limit: number, reason: string) => ({ url, limit, reason })
  const state = (second: number, ...endpoints: ReturnType<typeof server>[]) => ({
    second,
    limit: endpoints.reduce((sum, { limit }) => sum + limit, 0),
    reason: endpoints.map(({ reason }) => reason).join(' | '),
    endpoints,
  })

  test('one was cut once for preemptions, the other moves on', () => {
    const states = Array.from({ length: 100 }, (_, second) =>
      state(
        second,
        second < 5 ? server('a', 50, 'start') : server('a', 46, FULL),
        server('b', 10 + second, FREE),
      ),
    )
    const { reasons, preempted, servers, preempted_servers, auto } = traced(states)
    assert.deepEqual(reasons, { [FREE]: 99, 'N preemptions a minute': 1 })
    assert.deepEqual([preempted, servers, preempted_servers, auto], [1, 2, 1, true])
  })

  test('two that move against each other are no standstill', () => {
    const told = traced([
      state(0, server('a', 10, 'start'), server('b', 10, 'start')),
      state(1, server('a', 8, FULL), server('b', 12, FREE)),
    ])
    assert.deepEqual(told.reasons, { 'N preemptions a minute': 1, [FREE]: 1 })
  })

  test('in another order, or with one that is gone for a while, they are the same', () => {
    const told = traced([
      state(0, server('a', 10, 'start'), server('b', 20, 'start')),
      state(1, server('b', 20, 'start'), server('a', 10, 'start')),
      state(2, server('b', 20, 'start')),
      state(3, server('a', 10, 'start'), server('b', 20, 'start')),
    ])
    assert.deepEqual(told.reasons, {})
  })

  test('servers with a fixed limit tell none of their own', () => {
    const endpoints = [{ url: 'a' }, { url: 'b' }]
    const told = traced([0, 1].map((second) => ({ second, limit: 9, reason: 'fixed', endpoints })))
    assert.deepEqual([told.reasons, told.auto, told.servers], [{}, false, 1])
  })

  test('names of servers without end take no memory', () => {
    const states = Array.from({ length: 3000 }, (_, second) =>
      state(second, server(`u${second}`, 1, 'start'), server('b', 1, 'start')),
    )
    assert.ok(traced(states).servers <= 1000)
  })
})

describe('a second without a line', () => {
  const limits = (...seconds: number[]): (number | null)[] =>
    traced(seconds.map((second) => ({ second, limit: 10 + second, first_token_ms: 5 }))).bins.map(
      (bin) => bin.limit,
    )

  test('between lines that came a little late has the state before it', () => {
    assert.deepEqual(limits(0, 1, 3, 4), [10, 11, 11, 13, 14])
  })

  test('is a gap where there are more of them', () => {
    assert.deepEqual(limits(0, 1, 4, 5), [10, 11, null, null, 14, 15])
  })

  test('is not a line that does not tell something', () => {
    const { bins } = traced([
      { second: 0, limit: 1, first_token_ms: 5 },
      { second: 1, limit: 1 },
    ])
    assert.deepEqual(
      bins.map((bin) => bin.first_token_ms),
      [5, null],
    )
  })
})
