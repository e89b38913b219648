import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startSimulator } from '../../src/simulator/server.ts'
import { fanout } from '../support/fanout.ts'
import { newFolder, run } from '../support/run.ts'
import { chat, json, serve } from '../support/servers.ts'

interface BatchAnswer {
  id: string
  custom_id: string
  response: { status_code: number; request_id: string; body: Record<string, unknown> }
  error: null
}

test('an OpenAI batch file of mixed endpoints runs unchanged, and its answers complete it', async () => {
  const server = await startSimulator({ speed: 500, meanTokens: 50, keepAliveMs: 0 })
  const folder = newFolder()
  const model = 'simulated'
  const user = [{ role: 'user', content: 'Why?' }]
  const bodies: [string, object, string][] = [
    ['/v1/chat/completions', { model, messages: user }, 'choices'],
    ['/v1/completions', { model, prompt: 'Because' }, 'choices'],
    ['/v1/embeddings', { model, input: 'why' }, 'data'],
    ['/v1/responses', { model, input: 'Why?' }, 'output'],
  ]
  const lines = bodies.map(([url, body], index) =>
    JSON.stringify({ custom_id: `r${index}`, method: 'POST', url, body }),
  )
  writeFileSync(join(folder, 'batch.jsonl'), `${lines.join('\n')}\n`)
  const env = { OPENAI_BASE_URL: `${server.url}/v1` }
  try {
    const checked = await run('validate-jsonl', ['-q', '--as', 'batch-input', 'batch.jsonl'], {
      cwd: folder,
    })
    assert.equal(checked.code, 0, checked.stderr)
    const args = ['batch.jsonl', '-o', 'out.jsonl', '--clock-speed', '500']
    const result = await run('fanout-complete', args, { cwd: folder, env })
    assert.equal(result.code, 0, result.stderr)
    const passed = await run('validate-jsonl', ['--as', 'batch-output', 'out.jsonl'], {
      cwd: folder,
    })
    assert.equal(passed.code, 0, passed.stderr)
    const answers = passed.stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as BatchAnswer)
    for (const [index, [, , member]] of bodies.entries()) {
      const answer = answers.find(({ custom_id }) => custom_id === `r${index}`)
      assert.equal(answer?.response.status_code, 200)
      assert.ok(Array.isArray(answer?.response.body[member]), `${member} of r${index}`)
      assert.equal(answer?.error, null)
    }
    const left = await run('dedupe-completed', ['--completed', 'out.jsonl', 'batch.jsonl'], {
      cwd: folder,
    })
    assert.equal(left.stdout.length, 0)
    assert.equal(left.code, 0, left.stderr)
  } finally {
    await server.close()
  }
})

/** The answers by custom_id, as the code around OpenAI's output files reads them. */
function byCustomId(output: Buffer): Map<string, Record<string, unknown>> {
  const lines = output.toString().trimEnd().split('\n')
  return new Map(
    lines.map((line) => {
      const { custom_id, response, error } = JSON.parse(line) as BatchAnswer
      assert.deepEqual([error, response.status_code], [null, 200])
      return [custom_id, response.body]
    }),
  )
}

const batchLine = (custom_id: string, url: string, body: object): string =>
  JSON.stringify({ custom_id, method: 'POST', url, body })

/** What a server answers by its path, in the words of OpenAI's reference. */
const REPLIES: Record<string, object> = {
  '/gateway/v1/embeddings': {
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: [0.25, -1e-7] }],
    model: 'e',
    usage: { prompt_tokens: 1, total_tokens: 1 },
  },
  '/gateway/v1/responses': {
    object: 'response',
    status: 'completed',
    output: [{ type: 'message', content: [{ type: 'output_text', text: 'Because.' }] }],
  },
  '/gateway/v1/moderations': { results: [{ flagged: false }] },
  '/gateway/v1/audio/speech/v2': { ok: true },
  '/gateway/v1/rerank': { results: [{ index: 0, relevance_score: 0.5 }] },
}

test('any url below the base is asked there, and the answer is read by its custom_id', async (t) => {
  const server = await serve(
    t,
    (request, response) => {
      const reply = REPLIES[request.path]
      if (reply === undefined) json(response, { error: { message: 'no such path' } }, 404)
      else json(response, reply)
    },
    { gets: { '/gateway/v1/models': (response) => json(response, { data: [{ id: 'm' }] }) } },
  )
  const lines = [
    batchLine('gone', '/v1/nowhere', {}),
    batchLine('e', '/v1/embeddings', { model: 'e', input: ['why'] }),
    batchLine('r', '/v1/responses', { model: 'm', input: 'Why?' }),
    batchLine('m', '/v1/moderations', { input: 'why' }),
    batchLine('a', '/v1/audio/speech/v2', { input: 'why' }),
    batchLine('k', '/rerank', { query: 'why' }),
  ]
  const cwd = newFolder()
  const base = server.url.replace(/\/v1$/, '')
  const args = ['--url', `${base}/gateway/v1`, '-q', '-c', '1']
  const input = `${lines.join('\n')}\n`
  const { code, stdout, stderr } = await run('fanout-complete', args, { cwd, input })
  assert.equal(code, 1)
  assert.match(stderr, /^ERROR sample gone: HTTP 404: the server says: no such path .*\n$/)
  const answers = byCustomId(stdout)
  for (const [id, path] of [
    ['e', 'embeddings'],
    ['r', 'responses'],
    ['m', 'moderations'],
    ['a', 'audio/speech/v2'],
    ['k', 'rerank'],
  ] as const) {
    assert.deepEqual(answers.get(id), REPLIES[`/gateway/v1/${path}`])
  }
  assert.equal(answers.size, 5)
})

test('error lines of both vendors are asked again, and what was answered is not', async (t) => {
  const asked: string[] = []
  const server = await serve(t, (request, response) => {
    asked.push(request.body)
    json(response, { data: [] })
  })
  const ids = ['done', 'expired', 'status', 'object', 'text']
  const lines = ids.map((id) => batchLine(id, '/v1/embeddings', { model: 'e', input: id }))
  const cwd = newFolder()
  writeFileSync(join(cwd, 'batch.jsonl'), `${lines.join('\n')}\n`)
  const answered = { status_code: 200, request_id: 'r', body: { data: [] } }
  const refused = { status_code: 400, request_id: 'r', body: null }
  const earlier = [
    { id: 'batch_req_1', custom_id: 'done', response: answered, error: null },
    {
      id: 'batch_req_2',
      custom_id: 'expired',
      response: null,
      error: { code: 'batch_expired', message: 'This request could not be executed.' },
    },
    { id: 'batch_req_3', custom_id: 'status', response: { ...refused, body: {} }, error: null },
    {
      id: 'vllm-4',
      custom_id: 'object',
      response: refused,
      error: { object: 'error', message: 'no', type: 'BadRequestError', param: null, code: 400 },
    },
    { id: 'vllm-5', custom_id: 'text', response: refused, error: 'The url is not supported.' },
  ]
  const output = join(cwd, 'out.jsonl')
  writeFileSync(output, earlier.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const dedupe = ['-q', '--completed', 'out.jsonl', 'batch.jsonl']
  const left = await run('dedupe-completed', dedupe, { cwd })
  assert.deepEqual([left.code, left.stdout.toString()], [0, `${lines.slice(1).join('\n')}\n`])
  const args = ['--url', server.url, '--resume', '-o', 'out.jsonl', '-q', 'batch.jsonl']
  const again = await run('fanout-complete', args, { cwd })
  assert.equal(again.code, 0, again.stderr)
  const inputs = asked.filter((body) => body !== '').map((body) => JSON.parse(body).input as string)
  assert.deepEqual(inputs.sort(), ids.slice(1).sort())
  const finished = await run('dedupe-completed', dedupe, { cwd })
  assert.deepEqual([finished.code, finished.stdout.length], [0, 0])
})

test('answers that are cut are counted and fail with --on-length fail, and tokens are counted', async (t) => {
  const server = await serve(t, (request, response) => {
    const { content } = (JSON.parse(request.body) as { messages: { content: string }[] })
      .messages[0]!
    if (content === 'vector') return json(response, { data: [], usage: { prompt_tokens: 2 } })
    const cut = { index: 1, message: { content: 'half' }, finish_reason: 'length' }
    const { choices, ...others } = chat('whole') as { choices: object[] }
    json(response, { ...others, choices: content === 'cut' ? [...choices, cut] : choices })
  })
  const body = (content: string): object => ({ messages: [{ role: 'user', content }] })
  const input = [
    batchLine('whole', '/v1/chat/completions', body('whole')),
    batchLine('cut', '/v1/chat/completions', body('cut')),
    batchLine('e', '/v1/embeddings', body('vector')),
  ]
  const text = `${input.join('\n')}\n`
  const kept = await fanout(server.url, [], { input: text })
  assert.equal(kept.lines.length, 3)
  assert.deepEqual(kept.stats.finish, { length: 1, content_filter: 0, empty: 0 })
  const { prompt, completion } = kept.stats.tokens
  assert.deepEqual([prompt, completion], [9 + 9 + 2, 5 + 5])
  const failed = await fanout(server.url, ['--on-length', 'fail'], { input: text })
  assert.equal(failed.code, 1)
  assert.equal(failed.lines.length, 2)
  assert.deepEqual(failed.stats.finish, kept.stats.finish)
  assert.deepEqual(failed.stats.tokens, kept.stats.tokens)
  assert.deepEqual(
    failed.failures.map(({ id, error }) => [id, error.code, error.attempts]),
    [['cut', 'cut-by-length', 1]],
  )
  assert.deepEqual(failed.failures[0]!.input, JSON.parse(input[1]!))
})
