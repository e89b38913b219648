import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const KNOWN =
  '{"conversations":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}\n'
const UNKNOWN = '{"dialog":[],"n":1}\n'

const PROGRAMS: [string, string[]][] = [
  ['extract-prompts', []],
  ['export-conversations', ['--to', 'messages']],
]

for (const [program, args] of PROGRAMS) {
  /** Runs it over one file. */
  const over = async (text: string) => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'd'), text)
    const { code, stdout, stderr } = await run(program, [...args, '-q', 'd'], { cwd })
    const messages = stderr.split('\n').slice(0, -1)
    return { code, rows: stdout.toString().split('\n').length - 1, messages }
  }

  describe(`${program}: a file that is none of the known ones`, () => {
    for (const count of [1, 99, 100, 5000]) {
      test(`${count} rows of no known shape: one message with their fields`, async () => {
        const { code, rows, messages } = await over(UNKNOWN.repeat(count))
        assert.deepEqual([code, rows, messages.length], [2, 0, 1])
        assert.match(messages[0]!, /d: none of the known shapes: .*'dialog', 'n'; .*\[no-shape\]$/)
      })

      test(`${count} lines of CSV: one message with the way out`, async () => {
        const { code, rows, messages } = await over('id,"a, b",c\n'.repeat(count))
        assert.deepEqual([code, rows, messages.length], [2, 0, 1])
        assert.match(messages[0]!, /d: no line is JSON: .*CSV.*\[not-jsonl\]$/)
      })
    }

    test('a known row among the first hundred: the others are named one by one', async () => {
      const { code, rows, messages } = await over(`a,b\n${UNKNOWN.repeat(98)}${KNOWN}${UNKNOWN}`)
      assert.deepEqual([code, rows, messages.length], [1, 1, 100])
      assert.match(messages[0]!, /d:1:? ?.*\[syntax\]$/)
    })

    test('lines that begin like records are broken ones', async () => {
      const { code, messages } = await over('{"conversations":[\n{"conversations":[x\n')
      assert.deepEqual([code, messages.length], [1, 2])
    })

    test('nothing and blank lines are no file of another kind', async () => {
      for (const text of ['', '\n\n']) assert.deepEqual((await over(text)).code, 0)
    })
  })
}
