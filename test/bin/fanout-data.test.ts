import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { startSimulator } from '../../src/simulator/server.ts'
import { type Answered, linesOf, parsed } from '../support/fanout.ts'
import { executable, newFolder, run } from '../support/run.ts'

const DATA = fileURLToPath(new URL('../../../shared/data/', import.meta.url))
const FILES = ['mt_bench.jsonl', 'humaneval.jsonl'].map((name) => join(DATA, name))
const skip = FILES.every((file) => existsSync(file)) ? false : `SKIPPED: ${DATA} is missing`

interface Question {
  question_id: number
  turns: string[]
}

test('mt_bench and humaneval go through the whole pipeline as they are', { skip }, async (t) => {
  const server = await startSimulator({ speed: 500, meanTokens: 30, maxTokens: 100 })
  t.after(() => server.close())
  const folder = newFolder()
  for (const file of FILES) {
    const out = join(folder, 'out.jsonl')
    const pipeline = '"$0" "$1" --completed "$3" "$4" | "$0" "$2" --url "$5" --stats "$6" >> "$3"'
    const own = `${out}.${FILES.indexOf(file)}`
    const words = [
      executable('dedupe-completed'),
      executable('fanout-complete'),
      own,
      file,
      `${server.url}/v1`,
      `${own}.stats`,
    ]
    const child = spawn('sh', ['-c', pipeline, process.execPath, ...words], { stdio: 'ignore' })
    const [code] = (await once(child, 'close')) as [number]
    assert.equal(code, 0)
    const lines = linesOf(own)
    const sources = readFileSync(file, 'utf8').trimEnd().split('\n')
    assert.equal(lines.length, 80)
    assert.equal(sources.length, 80)
    const byId = new Map(
      parsed<Answered>(lines).map((record, index) => [record.id, { record, line: lines[index]! }]),
    )
    assert.equal(byId.size, 80)
    for (const source of sources) {
      const { question_id, turns } = JSON.parse(source) as Question
      const { record, line } = byId.get(question_id)!
      assert.equal(record.conversations.length, turns.length * 2)
      const asked = record.conversations.filter(({ role }) => role === 'user')
      assert.deepEqual(
        asked.map(({ content }) => content),
        turns,
      )
      const others = membersBut(source, ['question_id', 'turns'])
      assert.ok(line.endsWith(`,"input":{${others.join(',')}}}`), line.slice(-300))
    }
    const valid = await run('validate-jsonl', ['-q', own])
    assert.equal(valid.code, 0, valid.stderr)
    const again = await run('dedupe-completed', ['--completed', own, file])
    assert.equal(again.code, 0, again.stderr)
    assert.equal(again.stdout.length, 0)
  }
  const { completed } = server.stats().requests
  assert.equal(completed, 80 * 2 + 80)
})

/** The members of one object as they are written, without white space around the colon. */
function membersBut(source: string, without: string[]): string[] {
  const names = Object.keys(JSON.parse(source) as object)
  const starts = names.map((name) => source.indexOf(`"${name}": `))
  return names.flatMap((name, index) => {
    const end = index + 1 < names.length ? starts[index + 1]! - 2 : source.lastIndexOf('}')
    const value = source.slice(starts[index]! + name.length + 4, end)
    return without.includes(name) ? [] : [`"${name}":${value}`]
  })
}
