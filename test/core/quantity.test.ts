import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration } from '../../src/core/quantity.ts'

test('durations carry: no minute has 60 seconds', () => {
  const cases: [number, string][] = [
    [0, '0 ms'],
    [999.4, '999 ms'],
    [999.5, '1 s'],
    [1_500, '1.5 s'],
    [59_940, '59.9 s'],
    [59_960, '1 m 0 s'],
    [119_600, '2 m 0 s'],
    [125_000, '2 m 5 s'],
    [3_599_600, '1 h 0 m'],
    [3_840_000, '1 h 4 m'],
  ]
  for (const [ms, text] of cases) assert.equal(formatDuration(ms), text, `${ms} ms`)
})
