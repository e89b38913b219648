import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const record = (n: number): string =>
  `${JSON.stringify({
    conversations: [
      { role: 'user', content: `q${n}` },
      { role: 'assistant', content: `a${n}` },
    ],
  })}\n`

const GOOD = '{"id":"good","messages":[{"role":"user","content":"hello"}]}\n'

async function parquetFolder(): Promise<{ cwd: string; bytes: Buffer; footer: number }> {
  const cwd = newFolder()
  writeFileSync(join(cwd, 'd.jsonl'), [1, 2, 3].map(record).join(''))
  const args = ['-q', '--to', 'parquet', '-o', 's.parquet', 'd.jsonl']
  const { code, stderr } = await run('export-conversations', args, { cwd })
  assert.equal(code, 0, stderr)
  writeFileSync(join(cwd, 'good.jsonl'), GOOD)
  const bytes = readFileSync(join(cwd, 's.parquet'))
  return { cwd, bytes, footer: bytes.length - 8 - bytes.readUInt32LE(bytes.length - 8) }
}

describe('a Parquet file with one bit wrong', () => {
  test('in the name of a column: damage of that file, and the next one is read', async () => {
    const { cwd, bytes, footer } = await parquetFolder()
    const at = bytes.indexOf('element', footer) + 2
    bytes[at]! ^= 2
    writeFileSync(join(cwd, 'f.parquet'), bytes)
    const files = ['s.parquet', 'f.parquet', 'good.jsonl']
    const { code, stdout, stderr } = await run('extract-prompts', ['-q', ...files], { cwd })
    assert.equal(code, 1, stderr)
    assert.match(stderr, /^extract-prompts: f\.parquet:.* \[parquet-damaged\]\n$/)
    assert.equal(stdout.toString().split('\n').length - 1, 3 + 1)
    assert.ok(stdout.toString().endsWith(GOOD))
  })

  test('anywhere: never a bug, and the next file is always read', async () => {
    const { cwd, bytes } = await parquetFolder()
    const files: string[] = []
    for (let bit = 4 * 8; bit < bytes.length * 8; bit += 3) {
      const flipped = Buffer.from(bytes)
      flipped[bit >> 3]! ^= 1 << (bit & 7)
      const name = `${bit}.parquet`
      writeFileSync(join(cwd, name), flipped)
      files.push(name)
    }
    const read = (names: string[]) =>
      run('extract-prompts', ['-q', '--verbose', ...names, 'good.jsonl'], { cwd })
    const { code, stdout, stderr } = await read(files)
    assert.doesNotMatch(stderr, /\[bug\]|Cannot |is not |undefined|Offset|Invalid/)
    assert.ok(stdout.toString().endsWith(GOOD), stderr.slice(-500))
    // Where the name of the column is another one, or its list no list, no prompt is to be found.
    const unknown = new Set(
      [...stderr.matchAll(/(\d+\.parquet): .*\[no-shape\]\n/g)].map(([, f]) => f),
    )
    assert.equal(code, unknown.size > 0 ? 2 : 1)
    const known = await read(files.filter((file) => !unknown.has(file)))
    assert.equal(known.code, 1, known.stderr.slice(-500))
  })
})
