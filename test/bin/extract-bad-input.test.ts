import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { parquet } from '../support/parquet.ts'
import { newFolder, run } from '../support/run.ts'

/** Runs extract-prompts -q over these files; each message as the place and the code that it names. */
async function extract(files: Record<string, string | Uint8Array>, args: string[] = []) {
  const cwd = newFolder()
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(cwd, name), bytes)
  const all = ['-q', '--rejects', 'r', ...args, ...Object.keys(files)]
  const { code, stdout, stderr } = await run('extract-prompts', all, { cwd })
  const named = stderr.split('\n').flatMap((line) => {
    const [, place, why] = /^extract-prompts: ([^ ]*): .*\[(.*)\]$/.exec(line) ?? []
    return place === undefined ? [] : [`${place} ${why}`]
  })
  const lines = stdout.toString().split('\n').slice(0, -1)
  const rejects = (): string => readFileSync(join(cwd, 'r'), 'utf8')
  return { code, lines, named, stderr, rejects }
}

const GOOD = '{"prompt":"good"}\n'
const good = (file: string, row: number) => `{"id":"${file}:${row}","prompt":"good"}`

type Schema = Parameters<typeof parquet>[0]

/** A list of structs of a text and a whole number, as a data set with its ratings has it. */
const NUMBERS: Schema = [
  { name: 'schema', num_children: 1 },
  { name: 'conversations', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
  { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
  { name: 'element', repetition_type: 'OPTIONAL', num_children: 2 },
  { name: 'from', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
  { name: 'value', type: 'INT32', repetition_type: 'OPTIONAL' },
]
const TEXTS: Schema = [
  { name: 'schema', num_children: 1 },
  { name: 'messages', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL' },
]

describe('columns and fields of the wrong type', () => {
  test('a column of numbers where the texts of turns should be', async () => {
    const rows = [1, 2].map((value) => [{ from: 'human', value }])
    const file = parquet(NUMBERS, [{ name: 'conversations', data: rows }])
    const { code, lines, named } = await extract({ 'n.parquet': file, d: GOOD })
    assert.deepEqual([code, lines], [1, [good('d', 1)]])
    assert.deepEqual(named, ['n.parquet:1 wrong-type', 'n.parquet:2 wrong-type'])
  })

  test('a column of texts where the turns should be is asked only where it is named', async () => {
    const text = JSON.stringify([{ role: 'user', content: 'q' }])
    const files = { 't.parquet': parquet(TEXTS, [{ name: 'messages', data: [text, null] }]) }
    const { code, named, stderr, rejects } = await extract({ ...files, d: GOOD })
    assert.equal(code, 1)
    assert.deepEqual(named, ['t.parquet:1 wrong-type', 't.parquet:2 no-prompt'])
    assert.match(stderr, /--prompt-field messages/)
    assert.match(rejects(), /"file":"t.parquet","line":1,.*"code":"wrong-type"/)
    const asked = await extract(files, ['--prompt-field', 'messages'])
    assert.deepEqual(asked.lines, [`{"id":"t.parquet:1","prompt":${JSON.stringify(text)}}`])
  })

  const odd = [
    '{"messages":[{"role":"user","content":7}]}',
    '{"messages":[{"role":"user","content":{"parts":["q"]}}]}',
    '{"messages":[{"role":"user","content":[1,2]}]}',
    '{"messages":[{"role":"system","content":true},{"role":"user","content":"q"}]}',
    '{"conversation":"user: q"}',
    '{"turns":"q"}',
    '{"question":{"text":"q"}}',
  ]
  for (const turns of ['first', 'keep', 'all']) {
    test(`of JSONL, --turns ${turns}`, async () => {
      const d = `${odd.join('\n')}\n${GOOD}`
      const { code, lines, named } = await extract({ d }, ['--turns', turns])
      assert.deepEqual([code, lines], [1, [good('d', odd.length + 1)]])
      assert.deepEqual(
        named,
        odd.map((_, index) => `d:${index + 1} wrong-type`),
      )
    })
  }
})

test('rows of nulls are named, also where the file has no others: its shape is known', async () => {
  const file = parquet(TEXTS, [{ name: 'messages', data: [null, null] }])
  const files = { 'n.parquet': file, j: '{"prompt":null,"id":null}\n{"other":1}\n', d: GOOD }
  const { code, lines, named } = await extract(files)
  assert.deepEqual([code, lines], [1, [good('d', 1)]])
  assert.deepEqual(
    named,
    ['n.parquet:1', 'n.parquet:2', 'j:1', 'j:2'].map((place) => `${place} no-prompt`),
  )
})

test('a JSON array: each broken element is named by its number, the rest goes on', async () => {
  const text = `[${GOOD},
    {"prompt":"b" "x"}, 7, ["q"], {"prompt":"c"}}, ${GOOD},
    {"conversations":[{"from":"gpt","value":"a"}]}, ${GOOD}]`
  const { code, lines, named } = await extract({ 'a.json': text })
  assert.equal(code, 1)
  assert.deepEqual(lines, [good('a.json', 1), good('a.json', 6), good('a.json', 8)])
  assert.deepEqual(named, [
    'a.json:2 syntax',
    'a.json:3 not-object',
    'a.json:4 not-object',
    'a.json:5 multiple-values',
    'a.json:7 assistant-first',
  ])
})

test('a JSON array in one line: a lost quote, a lost comma, and what stands behind them', async () => {
  const text =
    '[{"id":1,"prompt":"a"},{"id":2,"prompt":"no end},{"id":3,"prompt":"c"}{"id":4,"prompt":"d"}]'
  const { code, lines, named, stderr, rejects } = await extract({ 'a.json': text })
  assert.equal(code, 1)
  assert.deepEqual(
    lines,
    ['a', 'c', 'd'].map((prompt) => `{"id":${'a cd'.indexOf(prompt) + 1},"prompt":"${prompt}"}`),
  )
  assert.deepEqual(named, ['a.json:2 truncated', 'a.json:4 missing-comma'])
  assert.match(stderr, /a.json:2: .*begins at 24\)/)
  const kept = JSON.parse(rejects())
  assert.deepEqual(
    [kept.line, kept.offset, kept.length, kept.text],
    [2, 23, 25, '{"id":2,"prompt":"no end}'],
  )
})

test('an array without commas gives every element, and names the first hundred places', async () => {
  const text = `[${GOOD.repeat(150)}]`
  const { code, lines, named, stderr } = await extract({ 'a.json': text })
  assert.deepEqual([code, lines.length, named.length], [1, 150, 101])
  assert.match(stderr, /a.json: 49 more such rows \(--verbose names them\) \[missing-comma\]\n$/)
})

test('Parquet cut at any place is named, and costs no other file', async () => {
  const file = parquet(TEXTS, [{ name: 'messages', data: ['q', 'r'] }])
  for (const length of [4, 8, file.length >> 1, file.length - 8, file.length - 1]) {
    const files = { 'c.parquet': file.subarray(0, length), d: GOOD }
    const { code, lines, named } = await extract(files)
    assert.deepEqual([code, lines], [1, [good('d', 1)]], `${length} bytes`)
    assert.deepEqual(named, ['c.parquet parquet-damaged'])
  }
})
