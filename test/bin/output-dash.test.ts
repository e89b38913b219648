import assert from 'node:assert/strict'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const OPTIONS: [binary: string, option: string, ...others: string[]][] = [
  ['validate-jsonl', '--rejects'],
  ['repair-truncated', '--removed'],
  ['repair-truncated', '--salvaged', '--salvage'],
  ['extract-prompts', '--rejects'],
  ['export-conversations', '-o', '--to', 'alpaca'],
  ['report-run', '--html'],
  ['fanout-complete', '-o'],
  ['fanout-complete', '--failures'],
  ['fanout-complete', '--trace'],
]

describe('standard output is for records: no option writes something else there', () => {
  for (const [binary, option, ...others] of OPTIONS) {
    test(`${binary} ${option} -`, async () => {
      const cwd = newFolder()
      writeFileSync(join(cwd, 'in.jsonl'), '{"id":1,"prompt":"q"}\n')
      const { code, stderr, stdout } = await run(binary, [...others, option, '-', 'in.jsonl'], {
        cwd,
      })
      assert.equal(code, 2, stderr)
      assert.match(stderr, /takes a file, not - \(\.\/- is a file of that name\)/)
      assert.equal(stdout.length, 0)
      assert.deepEqual(readdirSync(cwd), ['in.jsonl'])
    })
  }
})

test('an option that takes a number or a word says so', async () => {
  const { code, stderr } = await run('fanout-complete', ['-c', 'Auto'])
  assert.equal(code, 2)
  assert.match(stderr, /takes a whole number or auto, not 'Auto'/)
})
