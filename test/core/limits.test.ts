import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { Gate, type Turn } from '../../src/core/gate.ts'
import { Histogram } from '../../src/core/histogram.ts'
import { restByHeaders } from '../../src/core/rate-headers.ts'
import { RateLimit } from '../../src/core/rate-limit.ts'
import { RetryBudget } from '../../src/core/retry-budget.ts'

describe('a limit per minute', () => {
  test('holds over any minute, whatever the arrivals', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(20_000), fc.integer({ min: 1, max: 30 })), { maxLength: 200 }),
        (arrivals) => {
          const limit = new RateLimit(100)
          const spent: { at: number; amount: number }[] = []
          let now = 0
          for (const [pause, amount] of arrivals) {
            now += pause
            for (let wait = limit.wait(amount, now); wait > 0; wait = limit.wait(amount, now)) {
              now += wait
            }
            limit.settle(0, amount, now)
            spent.push({ at: now, amount })
          }
          for (const { at } of spent) {
            const window = spent.filter((other) => other.at > at - 60_000 && other.at <= at)
            assert.ok(window.reduce((sum, { amount }) => sum + amount, 0) <= 100)
          }
        },
      ),
    )
  })

  test('counts what is on its way by its estimate', () => {
    const limit = new RateLimit(100)
    limit.reserve(60)
    assert.ok(limit.wait(50, 0) > 0)
    limit.settle(60, 10, 0)
    assert.equal(limit.wait(50, 0), 0)
  })

  test('lets through alone what is larger than the limit', () => {
    const limit = new RateLimit(10)
    assert.equal(limit.wait(50, 0), 0)
    limit.settle(0, 50, 0)
    assert.equal(limit.wait(1, 30_000), 30_000)
    assert.equal(limit.wait(1, 60_000), 0)
  })
})

describe('the retry budget', () => {
  test('is free until there are enough requests, then a share of them', () => {
    const budget = new RetryBudget(0.1)
    for (let i = 0; i < 5; i++) assert.equal(budget.wait(0), 0)
    assert.equal(budget.wait(0), 0, 'the trickle')
    assert.ok(budget.wait(0) > 0)
    for (let i = 0; i < 1000; i++) budget.request()
    let retries = 0
    while (budget.wait(0) === 0) retries++
    assert.equal(retries, 94)
  })

  test('lets one a second through when it is used up', () => {
    const budget = new RetryBudget(0)
    assert.equal(budget.wait(0), 0)
    assert.equal(budget.wait(400), 600)
    assert.equal(budget.wait(1000), 0)
  })
})

test('rate-limit headers say how long to rest', () => {
  const rest = (remaining: string, reset: string): number =>
    restByHeaders({
      'x-ratelimit-remaining-requests': remaining,
      'x-ratelimit-reset-requests': reset,
    })
  assert.equal(rest('1', '30s'), 0)
  assert.equal(rest('0', '30s'), 30_000)
  assert.equal(rest('0', '6m0s'), 360_000)
  assert.equal(rest('0', '12ms'), 12)
  assert.equal(rest('0', '1.5'), 1500)
  assert.equal(rest('0', 'soon'), 0)
  const tokens = { 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '2s' }
  assert.equal(restByHeaders(tokens), 2000)
})

test('percentiles come within 5 % and memory does not grow', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 10_000_000 }), { minLength: 1 }), (values) => {
      const histogram = new Histogram()
      for (const value of values) histogram.add(value)
      const sorted = values.toSorted((a, b) => a - b)
      for (const share of [0.5, 0.9, 0.99]) {
        const truth = sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)]!
        const told = histogram.percentile(share)
        assert.ok(Math.abs(told - truth) <= 0.05 * truth + 0.5, `${told} for ${truth}`)
      }
    }),
  )
})

describe('the gate', () => {
  const made = (count: number): { gate: Gate<number>; free: number[] } => {
    const free = Array.from({ length: count }, (_, index) => index)
    return { gate: new Gate(() => free.pop()), free }
  }

  test('serves those who go on before those who are new, each in order', async () => {
    const { gate, free } = made(0)
    const order: string[] = []
    const wait = (name: string, turn: Turn): void => {
      void gate.acquire(turn).then(() => order.push(name))
    }
    wait('new 1', 'new')
    wait('new 2', 'new')
    wait('retry', 'again')
    for (let i = 0; i < 3; i++) {
      free.push(i)
      gate.serve()
    }
    await Promise.resolve()
    assert.deepEqual(order, ['retry', 'new 1', 'new 2'])
  })

  test('hands nothing out while it is held for any reason', async () => {
    const { gate } = made(1)
    gate.hold('a')
    gate.hold('b')
    const got = gate.acquire('new')
    gate.resume('a')
    assert.equal(gate.waiting, 1)
    gate.resume('b')
    assert.equal(await got, 0)
  })

  test('gives those who wait nothing once it is closed', async () => {
    const { gate } = made(0)
    const waiting = [gate.acquire('again'), gate.acquire('new')]
    gate.close()
    assert.deepEqual(await Promise.all(waiting), [undefined, undefined])
    assert.equal(await gate.acquire('new'), undefined)
  })

  test('at its end it serves those who go on alone, and waits with them while it is held', async () => {
    const { gate, free } = made(0)
    const waiting = [gate.acquire('new'), gate.acquire('again'), gate.acquire('going-on')]
    gate.end()
    assert.deepEqual(await Promise.all(waiting.slice(0, 2)), [undefined, undefined])
    assert.equal(gate.waiting, 1)
    assert.equal(await gate.acquire('again'), undefined)
    free.push(7)
    gate.serve()
    assert.equal(await waiting[2], 7)
    gate.hold('disk')
    free.push(8)
    const held = gate.acquire('going-on')
    assert.equal(gate.waiting, 1)
    gate.resume('disk')
    assert.equal(await held, 8)
    const last = gate.acquire('going-on')
    gate.close()
    assert.equal(await last, undefined)
  })

  test('keeps its order over thousands', async () => {
    const { gate, free } = made(0)
    const got: number[] = []
    for (let i = 0; i < 5000; i++) void gate.acquire('new').then(() => got.push(i))
    for (let i = 0; i < 5000; i++) free.push(i)
    gate.serve()
    await Promise.resolve()
    assert.deepEqual(
      got,
      Array.from({ length: 5000 }, (_, index) => index),
    )
  })
})
