import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

interface Problem {
  severity: string
  file: string
  line?: number
  column?: number
  code: string
  message: string
}

/** Runs validate-jsonl --json over the lines; gives what it says as [line, code, message]. */
async function problems(
  args: string[],
  lines: unknown[],
  cwd?: string,
): Promise<{ code: number | null; said: [number | undefined, string, string][] }> {
  const input = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)))
  const result = await run('validate-jsonl', ['-q', '--json', ...args], {
    input: `${input.join('\n')}\n`,
    ...(cwd !== undefined && { cwd }),
  })
  const all = result.stderr.split('\n').filter((line) => line !== '')
  const said = all.map((text) => JSON.parse(text) as Problem)
  assert.ok(said.every(({ file }) => file === '<stdin>'))
  return { code: result.code, said: said.map(({ line, code, message }) => [line, code, message]) }
}

describe('--schema', () => {
  test('2020-12 and draft-07, with the pointer and what was expected', async () => {
    const folder = newFolder()
    const properties = { role: { enum: ['user', 'assistant'] }, n: { type: 'integer' } }
    const schema = { type: 'object', required: ['role'], properties }
    writeFileSync(join(folder, 'new.json'), JSON.stringify(schema))
    const $schema = 'http://json-schema.org/draft-07/schema#'
    writeFileSync(join(folder, 'old.json'), JSON.stringify({ $schema, ...schema }))
    for (const file of ['new.json', 'old.json']) {
      const lines = [{ role: 'user', n: 1 }, { role: 'human' }, { n: 1.5, role: 'user' }, {}]
      const { code, said } = await problems(['--schema', file], lines, folder)
      assert.equal(code, 1)
      assert.deepEqual(
        said.map(([line, word]) => [line, word]),
        [2, 3, 4].map((line) => [line, 'schema']),
      )
      assert.match(said[0]![2], /^\/role: .*"user","assistant"/)
      assert.match(said[1]![2], /^\/n: must be integer/)
      assert.match(said[2]![2], /^the record: .*required property 'role'/)
    }
  })

  test('a file that is no schema is exit 2', async () => {
    const folder = newFolder()
    writeFileSync(join(folder, 'bad.json'), '{"type":"objekt"}')
    for (const file of ['bad.json', 'missing.json']) {
      const result = await run('validate-jsonl', ['--schema', file], { cwd: folder, input: '{}\n' })
      assert.equal(result.code, 2)
      assert.equal(result.stderr.trim().split('\n').length, 1, result.stderr)
      assert.ok(result.stderr.includes(file))
    }
  })
})

test('--unique compares as keys do, over all files', async () => {
  const lines = ['{"id":1}', '{"id":"1"}', '{"id":1.0}', '{"id":"\\u0031"}', '{"x":1}', '{"x":1}']
  const { code, said } = await problems(['--unique', 'id'], lines)
  assert.equal(code, 1)
  assert.deepEqual(
    said.map(([line, word]) => [line, word]),
    [
      [2, 'not-unique'],
      [4, 'not-unique'],
    ],
  )
})

describe('--as', () => {
  const user = { role: 'user', content: 'Why?' }
  const assistant = { role: 'assistant', content: 'So.' }

  test('responses: what a trainer of draft models would refuse', async () => {
    const good = { id: 1, status: 'success', conversations: [user, assistant] }
    const { code, said } = await problems(
      ['--as', 'responses'],
      [
        good,
        { ...good, id: '' },
        { ...good, status: 'error' },
        { ...good, conversations: [user] },
        { ...good, conversations: [assistant] },
        { ...good, conversations: [user, user, assistant] },
        { ...good, conversations: [user, { role: 'assistant', content: '' }] },
        { ...good, conversations: [user, assistant, user] },
        { ...good, conversations: [{ role: 'human', content: 'x' }, assistant] },
        [1],
      ],
    )
    assert.equal(code, 1)
    const byLine = new Map(said.map(([line, , message]) => [line, message]))
    assert.equal(byLine.has(1), false)
    assert.match(byLine.get(2)!, /id/)
    assert.match(byLine.get(3)!, /status/)
    assert.match(byLine.get(4)!, /no assistant turn/)
    assert.match(byLine.get(5)!, /assistant may not follow the beginning/)
    assert.match(byLine.get(6)!, /user may not follow user/)
    assert.match(byLine.get(7)!, /no content/)
    assert.match(byLine.get(8)!, /does not end with the assistant/)
    assert.match(byLine.get(9)!, /unknown role|may not follow/)
    assert.match(byLine.get(10)!, /no object/)
  })

  test('messages: tools stand behind the call of an assistant', async () => {
    const call = { role: 'assistant', content: null, tool_calls: [{ id: 'a' }] }
    const tool = { role: 'tool', tool_call_id: 'a', content: '7' }
    const { said } = await problems(
      ['--as', 'messages'],
      [
        { messages: [{ role: 'system', content: 'Be brief.' }, user, call, tool, assistant] },
        { messages: [user, tool, assistant] },
        { messages: [] },
      ],
    )
    assert.deepEqual(
      said.map(([line]) => line),
      [2, 3],
    )
  })

  test('batch-input: what OpenAI refuses after the upload', async () => {
    const body = { model: 'm', messages: [user] }
    const good = { custom_id: 'a', method: 'POST', url: '/v1/chat/completions', body }
    const { code, said } = await problems(
      ['--as', 'batch-input'],
      [
        good,
        good,
        { ...good, custom_id: 3 },
        { ...good, custom_id: 'c', method: 'GET' },
        { ...good, custom_id: 'd', url: '/v1/chat' },
        { ...good, custom_id: 'e', body: { messages: [user] } },
        { ...good, custom_id: 'f', body: { ...body, stream: true } },
        { ...good, custom_id: 'g', url: '/v1/embeddings', body: { model: 'm', input: 'x' } },
      ],
    )
    assert.equal(code, 1)
    assert.deepEqual(
      said.map(([line, word]) => [line, word]),
      [[2, 'duplicate-id'], ...[3, 4, 5, 6, 7].map((line) => [line, 'shape'])],
    )
  })

  test('batch-input: more than 50,000 lines are told once', async () => {
    const line = (id: number): string =>
      `{"custom_id":"${id}","method":"POST","url":"/v1/completions","body":{"model":"m","prompt":"x"}}`
    const lines = Array.from({ length: 50_002 }, (_, id) => line(id))
    const { code, said } = await problems(['--as', 'batch-input'], lines)
    assert.equal(code, 1)
    assert.deepEqual(
      said.map(([at, word]) => [at, word]),
      [[50_001, 'too-many-lines']],
    )
  })

  test('batch-output: lines of OpenAI and of vLLM', async () => {
    const { code, said } = await problems(
      ['--as', 'batch-output'],
      [
        {
          id: 'batch_req_1',
          custom_id: 'a',
          response: { status_code: 200, request_id: 'r', body: {} },
          error: null,
        },
        { id: 'vllm-1', custom_id: 'b', response: { status_code: 400, body: null }, error: 'bad' },
        { id: 'x', custom_id: 'c', response: null, error: { code: 'e', message: 'm' } },
        { id: 'x', custom_id: 'd', response: null, error: null },
      ],
    )
    assert.equal(code, 1)
    assert.deepEqual(
      said.map(([line]) => line),
      [4],
    )
  })
})
