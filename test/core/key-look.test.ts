import assert from 'node:assert/strict'
import { test } from 'node:test'
import { lookFor } from '../../src/core/block-look.ts'
import { KEY_COLUMNS } from '../../src/core/key-look.ts'
import { padded } from '../support/scan.ts'

const POLICY = { maxDepth: 64, allow: new Set<string>() }

test('a failure record has the key and the content of the record that it stands for', () => {
  const input = '{"id":"a","m":{"k":"a"},"prompt":"p"}'
  const failed = `{"id":"a","status":"error","error":{"code":"x"},"partial":{},"input":${input}}`
  const other = failed.replace('"p"', '"q"')
  const text = Buffer.from(`${input}\n${failed}\n${other}\n`)
  for (const key of [undefined, 'm.k']) {
    const table = lookFor({ kind: 'keys', policy: POLICY, key })(padded(text), text.length)
    const [first, second, third] = [0, 1, 2].map((row) =>
      [...(table as Int32Array)].slice(row * KEY_COLUMNS + 1, (row + 1) * KEY_COLUMNS),
    ) as [number[], number[], number[]]
    assert.deepEqual(second, first)
    assert.deepEqual(third.slice(0, 4), first.slice(0, 4))
    assert.notEqual(third[4], first[4])
  }
})
