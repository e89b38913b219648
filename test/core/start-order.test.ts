import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hangs, StartOrder } from '../../src/core/start-order.ts'

test('a queue that is served in order has none that hangs', () => {
  const order = new StartOrder()
  const queue = Array.from({ length: 100 }, () => order.sent())
  for (let i = 0; i < 1000; i++) {
    queue.push(order.sent())
    order.started(queue.shift()!)
  }
  assert.equal(order.hung(20), 0)
  assert.equal(order.size, 100)
})

test('one that a quarter of a generation has overtaken hangs, until it ends', () => {
  const order = new StartOrder()
  const first = order.sent()
  for (let later = 1; later <= 25; later++) {
    assert.equal(order.hung(100), 0)
    order.started(order.sent())
  }
  assert.equal(order.hung(100), 1)
  assert.equal(order.hung(200), 0, 'of more that are open more may overtake')
  assert.ok(hangs(first, 100))
  order.ended(first)
  assert.equal(order.hung(100), 0)
  assert.equal(order.size, 0)
})

test('where nothing starts nothing hangs', () => {
  const order = new StartOrder()
  for (let i = 0; i < 64; i++) order.sent()
  assert.equal(order.hung(64), 0)
})
