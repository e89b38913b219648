import assert from 'node:assert/strict'
import { test } from 'node:test'
import { run } from '../support/run.ts'

const GOOD =
  '{"id":1,"status":"success","conversations":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],' +
  '"finish_reason":"stop","usage":{"completion_tokens":10},"timing":{"total_ms":90000}}\n'

test('reports what it can of a damaged file, names the rest, exit 1', async () => {
  const result = await run('report-run', ['--json'], { input: `${GOOD}{"id":2,"sta\n${GOOD}` })
  assert.equal(result.code, 1)
  assert.match(result.stderr, /^report-run: <stdin>:2:\d+: .* \[truncated\]\n$/)
  const report = JSON.parse(result.stdout.toString())
  assert.deepEqual([report.answered, report.invalid, report.what_if[0].killed], [2, 1, 2])
})

test('an empty file is a report of nothing', async () => {
  const result = await run('report-run', [], { input: '' })
  assert.deepEqual([result.code, result.stderr], [0, ''])
  assert.match(result.stdout.toString(), /^Records +0: /)
})
