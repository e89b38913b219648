import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const KNOWN =
  '{"conversations":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}\n'
const UNKNOWN = '{"dialog":[],"n":1}\n'

/** Bytes as of a picture: no rule in them, the same each time. */
function binary(seed: number, size: number): Buffer {
  const parts = [Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')]
  for (let at = 0; at < size; at += 32) {
    parts.push(createHash('sha256').update(`${seed} ${at}`).digest())
  }
  return Buffer.concat(parts)
}

const PROGRAMS: [string, string[]][] = [
  ['extract-prompts', []],
  ['export-conversations', ['--to', 'messages']],
]

for (const [program, args] of PROGRAMS) {
  /** Runs it over one file. */
  const over = async (text: string | Uint8Array) => {
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

    for (const size of [32, 1024, 100_000, 1_000_000]) {
      test(`a binary file of ${size} bytes: one message`, async () => {
        for (const seed of [1, 2, 3]) {
          const { code, rows, messages } = await over(binary(seed, size))
          assert.deepEqual(
            [code, rows, messages.length],
            [2, 0, 1],
            messages.slice(0, 3).join('\n'),
          )
          assert.match(messages[0]!, /d: no line is JSON: .*\[not-jsonl\]$/)
        }
      })
    }

    test('nothing but scalars: one message', async () => {
      for (const text of ['1\n2\n', '"a"\n', 'null\n'.repeat(300)]) {
        const { code, rows, messages } = await over(text)
        assert.deepEqual([code, rows, messages.length], [2, 0, 1], messages.slice(0, 3).join('\n'))
        assert.match(
          messages[0]!,
          /d: none of the known shapes: its rows have no fields \[no-shape\]$/,
        )
      }
    })

    test('a scalar beside a good record is named', async () => {
      for (const text of [`1\n${KNOWN}`, `${KNOWN}1\n`]) {
        const { code, rows, messages } = await over(text)
        assert.deepEqual([code, rows, messages.length], [1, 1, 1])
      }
    })

    test('broken records in Latin-1, and a good one behind binary lines, are named one by one', async () => {
      const latin1 = await over(
        Buffer.from('{"conversations":[{"x":"\xe9"}]}\n'.repeat(3), 'latin1'),
      )
      assert.deepEqual([latin1.code, latin1.messages.length], [1, 3])
      const behind = await over(Buffer.concat([binary(1, 320), Buffer.from(`\n${KNOWN}`)]))
      assert.deepEqual([behind.code, behind.rows], [1, 1])
    })

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

test('extract-prompts: an array of nothing but scalars', async () => {
  const cwd = newFolder()
  writeFileSync(join(cwd, 'd'), '[1,2]')
  const { code, stderr } = await run('extract-prompts', ['-q', 'd'], { cwd })
  assert.equal(code, 2)
  assert.match(stderr, /^extract-prompts: d: none of the known shapes: .*\[no-shape\]\n$/)
})

test('export-conversations: an array over several lines, one message and the old output stays', async () => {
  const cwd = newFolder()
  const records = [KNOWN, KNOWN].map((text) => JSON.parse(text) as unknown)
  for (const [text, code] of [
    [JSON.stringify(records, null, 2), 'json-array'],
    [`[\n${KNOWN.trimEnd()},\n${KNOWN}]\n`, 'json-array'],
    [JSON.stringify(records[0], null, 2), 'pretty-printed'],
  ] as const) {
    writeFileSync(join(cwd, 'd'), text)
    writeFileSync(join(cwd, 'o'), 'old')
    const args = ['-q', '--to', 'messages', '-o', 'o', 'd']
    const result = await run('export-conversations', args, { cwd })
    assert.equal(result.code, 2)
    assert.equal(readFileSync(join(cwd, 'o'), 'utf8'), 'old')
    const [first, second, ...others] = result.stderr.split('\n')
    assert.match(first!, new RegExp(`^export-conversations: d: .* jq -c .*\\[${code}\\]$`))
    assert.match(second!, /nothing was written/)
    assert.deepEqual(others, [''])
  }
})
