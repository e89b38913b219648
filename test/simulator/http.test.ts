import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import OpenAI from 'openai'
import { expectedAnswer } from '../../src/simulator/answer.ts'
import {
  assertBalanced,
  chatBody,
  chunksOf,
  eventsOf,
  joinStream,
  post,
  QUICK,
  RawPost,
  readWhole,
  STREAM,
  withServer,
} from './client.ts'

interface ErrorBody {
  readonly error: { message: string; type: string; param: string | null; code: number }
}

describe('chat completions', () => {
  it('streamed, not streamed and expected answers are the same', () =>
    withServer(QUICK, async (server) => {
      const prompts = Array.from({ length: 30 }, (_, i) => `What is ${i} + ${i}? 🙂`)
      await Promise.all(
        prompts.map(async (prompt) => {
          const expected = expectedAnswer(chatBody(prompt), QUICK)
          const whole = await post(server, '/chat/completions', chatBody(prompt))
          assert.deepEqual(readWhole(await whole.json()), expected)
          const streamed = await post(server, '/chat/completions', chatBody(prompt, STREAM))
          assert.deepEqual(joinStream(await streamed.text()), expected)
        }),
      )
      const stats = server.stats()
      assertBalanced(stats)
      assert.equal(stats.requests.completed, 60)
      assert.equal(stats.tokens.wasted, 0)
      const tokens = prompts.map((p) => expectedAnswer(chatBody(p), QUICK).usage.completion_tokens)
      assert.equal(stats.tokens.delivered, 2 * tokens.reduce((a, b) => a + b))
    }))

  it('streams role, reasoning, content, finish, usage and [DONE], in this order', () =>
    withServer({ ...QUICK, lengthSigma: 0 }, async (server) => {
      const response = await post(server, '/chat/completions', chatBody('hi', STREAM))
      assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
      const text = await response.text()
      assert.equal(eventsOf(text).at(-1), '[DONE]')
      const chunks = chunksOf(text)
      assert.equal(new Set(chunks.map((chunk) => chunk.id)).size, 1)
      assert.deepEqual(chunks[0]!.choices[0]!.delta, { role: 'assistant', content: '' })
      const kinds = chunks.map(({ choices, usage }) => {
        if (usage) return `usage${choices.length}`
        return choices[0]!.finish_reason ?? Object.keys(choices[0]!.delta!).join()
      })
      const order = kinds.filter((kind, i) => kind !== kinds[i - 1])
      assert.deepEqual(order, ['role,content', 'reasoning', 'content', 'stop', 'usage0'])
      assert.equal(kinds.filter((kind) => kind === 'reasoning' || kind === 'content').length, 40)
    }))

  it('sends usage only when asked', () =>
    withServer(QUICK, async (server) => {
      const response = await post(server, '/chat/completions', chatBody('hi', { stream: true }))
      assert.equal(joinStream(await response.text()).usage, undefined)
    }))

  it('names reasoning as it is told', () =>
    withServer({ ...QUICK, reasoningField: 'both' }, async (server) => {
      const { reasoning } = expectedAnswer(chatBody('think'), QUICK)
      const whole = await post(server, '/chat/completions', chatBody('think'))
      const { choices } = (await whole.json()) as { choices: [{ message: object }] }
      const { reasoning: a, reasoning_content: b } = choices[0].message as Record<string, string>
      assert.deepEqual([a, b], [reasoning, reasoning])
      const streamed = await post(server, '/chat/completions', chatBody('think', STREAM))
      const deltas = chunksOf(await streamed.text()).map((chunk) => chunk.choices[0]?.delta ?? {})
      assert.equal(deltas.map((delta) => delta.reasoning ?? '').join(''), reasoning)
      assert.equal(deltas.map((delta) => delta.reasoning_content ?? '').join(''), reasoning)
    }))

  it('stops at the limits of the request', () =>
    withServer({ ...QUICK, lengthSigma: 0 }, async (server) => {
      const cases = [
        { more: { max_tokens: 5 }, tokens: 5, reason: 'length' },
        { more: { max_tokens: 5, max_completion_tokens: 7 }, tokens: 7, reason: 'length' },
        { more: { max_tokens: 40 }, tokens: 40, reason: 'stop' },
        { more: { min_tokens: 60 }, tokens: 60, reason: 'stop' },
        { more: { ignore_eos: true, max_tokens: 90 }, tokens: 90, reason: 'length' },
        { more: { min_tokens: 1_000 }, tokens: 400, reason: 'length' },
      ]
      for (const { more, tokens, reason } of cases) {
        const response = await post(server, '/chat/completions', chatBody('hi', more))
        const { usage, finish_reason } = readWhole(await response.json())
        assert.deepEqual([usage.completion_tokens, finish_reason], [tokens, reason])
      }
    }))

  it('puts X-Request-Id into the id and sends it back', () =>
    withServer(QUICK, async (server) => {
      const headers = { 'x-request-id': 'mine-1' }
      const response = await post(server, '/chat/completions', chatBody('hi'), headers)
      assert.equal(response.headers.get('x-request-id'), 'mine-1')
      assert.equal(((await response.json()) as { id: string }).id, 'chatcmpl-mine-1')
    }))

  it('satisfies the OpenAI client', () =>
    withServer({ ...QUICK, apiKey: 'k', model: 'org/m' }, async ({ url }) => {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k' })
      assert.equal((await client.models.list()).data[0]!.id, 'org/m')
      const messages = [{ role: 'user' as const, content: 'hi' }]
      const { content } = expectedAnswer({ messages }, { ...QUICK, model: 'org/m' })
      const whole = await client.chat.completions.create({ model: 'org/m', messages })
      assert.equal(whole.choices[0]!.message.content, content)
      let text = ''
      const stream = await client.chat.completions.create({
        model: 'org/m',
        messages,
        stream: true,
      })
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
      assert.equal(text, content)
      const answer = await client.responses.create({ model: 'org/m', input: 'hi' })
      assert.equal(
        answer.output_text,
        expectedAnswer({ input: 'hi' }, { ...QUICK, model: 'org/m' }).content,
      )
      const embedding = await client.embeddings.create({ model: 'org/m', input: ['a', 'b'] })
      assert.equal(embedding.data.length, 2)
    }))

  it('keeps a connection and answers pipelined requests in order', () =>
    withServer(QUICK, async (server) => {
      const first = new RawPost(server, chatBody('first', { max_tokens: 3 }))
      const body = JSON.stringify(chatBody('second', { max_tokens: 3 }))
      first.socket.write(
        `POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\nConnection: close\r\n`,
      )
      first.socket.write(`Content-Length: ${body.length}\r\n\r\n${body}`)
      assert.equal(await first.ended, 'end')
      const bodies = first.received.split('\r\n\r\n').filter((_, i) => i > 0)
      const contents = bodies.map((part) => JSON.parse(/^\{.*\}/.exec(part)![0]) as unknown)
      assert.deepEqual(
        contents.map((content) => readWhole(content)),
        ['first', 'second'].map((p) => expectedAnswer(chatBody(p, { max_tokens: 3 }), QUICK)),
      )
    }))

  it('settles a pipelined request whose connection closes before its turn', () =>
    withServer({ ...QUICK, speed: 1 }, async (server) => {
      const first = new RawPost(server, chatBody('first', { ignore_eos: true }))
      const body = JSON.stringify(chatBody('second', STREAM))
      first.socket.write(`POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\n`)
      first.socket.write(`Content-Length: ${body.length}\r\n\r\n${body}`)
      while (server.stats().requests.open < 2) await new Promise(setImmediate)
      await first.leave()
      while (server.stats().requests.open > 0) await new Promise(setImmediate)
      assert.equal(server.stats().requests.aborted, 2)
      assertBalanced(server.stats())
    }))
})

describe('text completions', () => {
  it('take text, a list of one, and token ids; streamed or not', () =>
    withServer(QUICK, async (server) => {
      for (const prompt of ['Once', ['Once'], [1, 2, 3], [[1, 2, 3]]]) {
        const expected = expectedAnswer({ prompt }, QUICK)
        assert.equal(expected.reasoning, '')
        assert.equal(
          expected.usage.prompt_tokens,
          prompt.length === 3 || Array.isArray(prompt[0]) ? 3 : 1,
        )
        const whole = await post(server, '/completions', { prompt })
        const { choices } = (await whole.json()) as { choices: [{ text: string }] }
        assert.equal(choices[0].text, expected.content)
        const streamed = await post(server, '/completions', { prompt, ...STREAM })
        assert.deepEqual(joinStream(await streamed.text()), expected)
      }
    }))
})

describe('errors', () => {
  const cases: { name: string; path: string; body: unknown; error: ErrorBody['error'] }[] = [
    {
      name: 'an unknown model',
      path: '/chat/completions',
      body: chatBody('hi', { model: 'x' }),
      error: {
        message: 'The model `x` does not exist.',
        type: 'NotFoundError',
        param: 'model',
        code: 404,
      },
    },
    {
      name: 'an unknown path',
      path: '/nothing',
      body: {},
      error: { message: 'Not Found', type: 'Not Found', param: null, code: 404 },
    },
    {
      name: 'priority without priority scheduling',
      path: '/chat/completions',
      body: chatBody('hi', { priority: 1 }),
      error: {
        message: 'Got priority 1 but Priority scheduling is not enabled.',
        type: 'BadRequestError',
        param: null,
        code: 400,
      },
    },
  ]
  for (const { name, path, body, error } of cases) {
    it(`${name}: ${error.code}`, () =>
      withServer(QUICK, async (server) => {
        const response = await post(server, path, body)
        assert.equal(response.status, error.code)
        assert.deepEqual(await response.json(), { error })
      }))
  }

  for (const body of [
    '{"messages": [',
    '[]',
    '{}',
    '{"messages": []}',
    '{"messages": "hi"}',
    JSON.stringify(chatBody('hi', { max_tokens: 0.5 })),
    JSON.stringify(chatBody('hi', { max_tokens: 0 })),
    JSON.stringify(chatBody('hi', { max_tokens: 1e6 })),
    JSON.stringify(chatBody('hi', { n: 2 })),
    JSON.stringify(chatBody('hi', { stream_options: { include_usage: true } })),
    JSON.stringify(chatBody('hi'.repeat(100_000))),
  ]) {
    it(`400 for ${body.slice(0, 80)}`, () =>
      withServer(QUICK, async (server) => {
        const response = await post(server, '/chat/completions', body)
        assert.equal(response.status, 400)
        const { error } = (await response.json()) as ErrorBody
        assert.equal(error.code, 400)
        const { requests } = server.stats()
        assert.deepEqual([requests.refused, requests.total], [1, 1])
      }))
  }

  it('asks for the key under /v1, and only there', () =>
    withServer({ ...QUICK, apiKey: 'secret' }, async (server) => {
      for (const headers of [{}, { authorization: 'Bearer other' }]) {
        const response = await post(server, '/chat/completions', chatBody('hi'), headers)
        assert.equal(response.status, 401)
        assert.deepEqual(await response.json(), { error: 'Unauthorized' })
        assert.equal((await fetch(`${server.url}/v1/models`, { headers })).status, 401)
      }
      assert.equal((await fetch(`${server.url}/health`)).status, 200)
      const headers = { authorization: 'Bearer secret' }
      const response = await post(server, '/chat/completions', chatBody('hi'), headers)
      assert.equal(response.status, 200)
      await response.text()
    }))
})

describe('other paths', () => {
  it('GET /v1/models, /version, /health', () =>
    withServer({ ...QUICK, model: 'm', maxModelLen: 4_096 }, async ({ url }) => {
      const models = (await (await fetch(`${url}/v1/models`)).json()) as { data: object[] }
      const { id, max_model_len, owned_by } = models.data[0] as Record<string, unknown>
      assert.deepEqual([models.data.length, id, max_model_len, owned_by], [1, 'm', 4_096, 'vllm'])
      assert.match(JSON.stringify(await (await fetch(`${url}/version`)).json()), /"version"/)
      const health = await fetch(`${url}/health`)
      assert.deepEqual([health.status, await health.text()], [200, ''])
    }))

  it('POST /v1/embeddings: the same text, the same vector', () =>
    withServer(QUICK, async (server) => {
      const response = await post(server, '/embeddings', { input: ['a', 'b', 'a'] })
      const { data } = (await response.json()) as { data: { embedding: number[] }[] }
      assert.deepEqual(data[0]!.embedding, data[2]!.embedding)
      assert.notDeepEqual(data[0]!.embedding, data[1]!.embedding)
    }))

  it('GET /stats is what stats() says', () =>
    withServer(QUICK, async (server) => {
      await (await post(server, '/chat/completions', chatBody('hi'))).text()
      const { uptime_ms: _, ...stats } = (await (await fetch(`${server.url}/stats`)).json()) as {
        uptime_ms: number
      }
      const { uptime_ms: __, ...own } = server.stats()
      assert.deepEqual(stats, own)
    }))
})
