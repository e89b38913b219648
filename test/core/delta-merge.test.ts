import assert from 'node:assert/strict'
import { test } from 'node:test'
import { merged, mergedParts } from '../../src/core/delta-merge.ts'

const DELTAS = 2000

/** How often elements are asked for their index while deltas of one element each are merged. */
function looksAt(
  indexOf: (delta: number) => number | undefined,
): [looks: number, value: unknown[]] {
  let looks = 0
  let all: unknown
  for (let delta = 0; delta < DELTAS; delta++) {
    const element = {
      token: `${delta}`,
      get index() {
        looks++
        return indexOf(delta)
      },
    }
    all = merged(all, { content: [element] })
  }
  return [looks, (all as { content: unknown[] }).content]
}

test('each delta of an array costs the same, however many have come', () => {
  const [plain, tokens] = looksAt(() => undefined)
  assert.equal(tokens.length, DELTAS)
  assert.ok(plain <= 4 * DELTAS, `${plain} looks`)
  const [indexed, calls] = looksAt((delta) => delta)
  assert.equal(calls.length, DELTAS)
  assert.ok(indexed <= 4 * DELTAS, `${indexed} looks`)
})

test('what has come is not copied for the next delta', () => {
  const all = merged(undefined, [{ token: 'a' }])
  assert.equal(merged(all, [{ token: 'b' }]), all)
  assert.deepEqual(all, [{ token: 'a' }, { token: 'b' }])
  const parts = mergedParts([], [{ type: 'thinking', thinking: 'a' }])
  assert.equal(mergedParts(parts, [{ type: 'text', text: 'b' }]), parts)
  assert.deepEqual(mergedParts(parts, [{ type: 'text', text: 'c' }]).at(-1), {
    type: 'text',
    text: 'bc',
  })
})

test('elements are joined by their index, also within one delta and out of order', () => {
  const call = (index: number, text: string): object => ({ index, function: { arguments: text } })
  let all = merged(undefined, [call(1, 'x'), call(0, 'a'), call(1, 'y'), { type: 'other' }])
  all = merged(all, [call(0, 'b'), call(2, 'z'), { type: 'other' }, call(2, '!')])
  assert.deepEqual(all, [
    call(1, 'xy'),
    call(0, 'ab'),
    { type: 'other' },
    call(2, 'z!'),
    { type: 'other' },
  ])
  // An array that came as it is inside an element.
  const nested = (text: string): unknown => [{ index: 0, parts: [call(5, text), call(7, text)] }]
  assert.deepEqual(merged(merged([], nested('a')), nested('b')), [
    { index: 0, parts: [call(5, 'ab'), call(7, 'ab')] },
  ])
})
