import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'
import { hasTerminals, onTerminal } from '../support/terminal.ts'

const URL_OPTION = ['--url', 'http://127.0.0.1:9/v1']

const BINARIES: [string, string[]][] = [
  ['validate-jsonl', []],
  ['repair-truncated', []],
  ['dedupe-completed', ['--completed', '/dev/null']],
  ['extract-prompts', []],
  ['export-conversations', ['--to', 'messages']],
  ['report-run', []],
  ['fanout-complete', URL_OPTION],
  ['fanout-complete', [...URL_OPTION, '--shard', '0/2']],
]

describe('an input that cannot be read is one line', { concurrency: 2 }, () => {
  for (const [name, args] of BINARIES) {
    test([name, ...args].join(' '), async () => {
      const cwd = newFolder()
      for (const [file, why] of [
        ['none', 'no such file or directory'],
        ['.', 'is a directory'],
      ] as const) {
        const { code, stderr } = await run(name, [...args, file], { cwd })
        assert.equal(code, 2)
        assert.equal(stderr, `${name}: ${file}: cannot read: ${why} [io]\n`)
      }
    })
  }

  test('counts are told where another one could be read', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'one'), '{"a":1}\n')
    const { code, stderr } = await run('validate-jsonl', ['none', 'one'], { cwd })
    assert.equal(code, 2)
    assert.match(stderr, /\nvalidate-jsonl: 1 of 1 lines valid\n$/)
  })

  const skip = hasTerminals ? false : 'PYTHON IS NOT INSTALLED: no terminal can be made'
  for (const [name, args] of [
    ['extract-prompts', []],
    ['fanout-complete', URL_OPTION],
  ] as const) {
    test(`and no bar: ${name}`, { skip }, async () => {
      const cwd = newFolder()
      const { shown } = await onTerminal(name, [...args, 'none'], { cwd, columns: 80, output: 'o' })
      assert.equal(shown, `${name}: none: cannot read: no such file or directory [io]\r\n`)
    })
  }
})
