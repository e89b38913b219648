import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fanout } from '../support/fanout.ts'
import {
  answerWell,
  answerWith,
  beginStream,
  chat,
  DONE,
  delta,
  events,
  json,
  lastMessage,
  serve,
  USAGE_CHUNK,
} from '../support/servers.ts'

const MODEL = ['--model', 'm']

describe('records of several turns', { concurrency: true }, () => {
  test('turns: every answer joins the context, usage and attempts are sums', async (t) => {
    const failedOnce = new Set<string>()
    const server = await serve(t, (request, response) => {
      const text = lastMessage(request)
      if (text === 'second' && !failedOnce.has(text)) {
        failedOnce.add(text)
        return json(response, { error: { message: 'busy' } }, 500)
      }
      const parts = [
        delta({ reasoning: 'hm' }),
        delta({ content: `re ${text}` }),
        delta({}, 'stop'),
      ]
      beginStream(response).end(events(...parts, USAGE_CHUNK, DONE))
    })
    const input = '{"question_id":1,"turns":["first","second"],"reference":["x","y"]}\n'
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 0, run.stderr)
    const [record] = run.records
    assert.deepEqual(record!.conversations, [
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 're first', reasoning_content: 'hm' },
      { role: 'user', content: 'second' },
      { role: 'assistant', content: 're second', reasoning_content: 'hm' },
    ])
    assert.deepEqual(record!.usage, { prompt_tokens: 18, completion_tokens: 10, total_tokens: 28 })
    assert.equal(record!.attempts, 3)
    assert.equal(record!.id, 1)
    assert.deepEqual(record!.input, { reference: ['x', 'y'] })
    const last = JSON.parse(server.requests.at(-1)!.body) as { messages: object[] }
    assert.deepEqual(
      last.messages.map((message) => (message as { role: string }).role),
      ['user', 'assistant', 'user'],
    )
    assert.equal(run.stats.tokens.prompt, 18)
    assert.equal(run.stats.tokens.completion, 10)
  })

  test('turns: what each took is told, and reasoning stays out of the context or not', async (t) => {
    for (const [history, sentBack] of [
      ['drop', undefined],
      ['keep', 'hm'],
    ] as const) {
      const server = await serve(t, (_request, response) => {
        const parts = [delta({ reasoning: 'hm' }), delta({ content: 'yes' }), delta({}, 'stop')]
        beginStream(response).end(events(...parts, USAGE_CHUNK, DONE))
      })
      const { records, lines } = await fanout(
        server.url,
        [...MODEL, '--history-reasoning', history],
        { input: '{"id":1,"turns":["a","b"]}\n' },
      )
      const last = JSON.parse(server.requests.at(-1)!.body) as { messages: object[] }
      const context = last.messages[1] as { reasoning_content?: string }
      assert.equal(context.reasoning_content, sentBack)
      assert.equal(records[0]?.conversations[1]?.reasoning_content, 'hm')
      const { turns } = JSON.parse(lines[0]!) as { turns: Record<string, unknown>[] }
      assert.equal(turns.length, 2)
      for (const turn of turns) {
        assert.equal(turn.finish_reason, 'stop')
        assert.equal(turn.attempts, 1)
        assert.deepEqual(turn.usage, { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 })
        assert.ok(Number(turn.total_ms) >= Number(turn.first_token_ms))
      }
    }
  })

  test('turns: a system text beside them comes first, and before --system', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const { records } = await fanout(server.url, [...MODEL, '--system', 'Be long.'], {
      input: '{"id":1,"turns":["a","b"],"system":"Be \\u0062rief."}\n{"id":2,"turns":["a"]}\n',
    })
    const own = records.find(({ id }) => id === 1)
    assert.deepEqual(
      own?.conversations.map(({ role }) => role),
      ['system', 'user', 'assistant', 'user', 'assistant'],
    )
    assert.equal(own?.conversations[0]?.content, 'Be brief.')
    assert.deepEqual(own?.input, {})
    assert.equal(records.find(({ id }) => id === 2)?.conversations[0]?.content, 'Be long.')
  })

  test('turns: the next one comes before records that are new', async (t) => {
    const server = await serve(t, answerWell)
    await fanout(server.url, [...MODEL, '-c', '1'], {
      input: '{"id":1,"turns":["a1","a2","a3"]}\n{"id":2,"turns":["b1","b2"]}\n',
    })
    assert.deepEqual(server.requests.map(lastMessage), ['a1', 'a2', 'a3', 'b1', 'b2'])
  })

  test('turns: a failure in the second one keeps the first', async (t) => {
    const server = await serve(t, (request, response) => {
      if (lastMessage(request) === 'two') return json(response, { error: { message: 'no' } }, 400)
      answerWith(request, response, 'one done')
    })
    const input = '{"id":"t","turns":["one","two"]}\n'
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 1)
    assert.deepEqual(run.lines, [])
    const [failure] = run.failures
    assert.deepEqual(failure!.partial.conversations, [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'one done' },
    ])
    assert.equal(failure!.error.code, 'http-400')
    assert.equal(failure!.error.attempts, 2)
    assert.deepEqual(failure!.input, { id: 't', turns: ['one', 'two'] })
  })

  test('turns: the message counts the attempts of the turn that failed, the record all', async (t) => {
    for (const [retries, told, sum] of [
      [0, 'attempt 1 of 1', 2],
      [2, 'attempt 3 of 3', 4],
    ] as const) {
      const server = await serve(t, (request, response) => {
        if (lastMessage(request) === 'two') return json(response, {}, 500)
        answerWell(request, response)
      })
      const run = await fanout(server.url, [...MODEL, '--retries', String(retries)], {
        input: '{"id":1,"turns":["one","two"]}\n',
        random: () => 0,
      })
      assert.ok(run.stderr.includes(`ERROR sample 1: HTTP 500: {} (${told})\n`), run.stderr)
      assert.equal(run.failures[0]!.error.attempts, sum)
    }
  })

  test('turns: the third alone is tried again, and its failure keeps the first two', async (t) => {
    for (const [status, tries, code] of [
      [503, 2, 0],
      [503, 3, 1],
    ] as const) {
      let third = 0
      const server = await serve(t, (request, response) => {
        const text = lastMessage(request)
        const fails = text === 'three' && ++third <= (code === 0 ? tries - 1 : tries)
        if (fails) return json(response, { error: { message: 'busy' } }, status)
        answerWith(request, response, `re ${text}`)
      })
      const input = '{"id":"t","turns":["one","two","three"]}\n'
      const run = await fanout(server.url, [...MODEL, '--retries', String(tries - 1)], { input })
      assert.equal(run.code, code, run.stderr)
      const chats = server.requests.filter(({ body }) => body !== '')
      assert.deepEqual(
        chats.map((request) => lastMessage(request)),
        ['one', 'two', ...Array.from({ length: tries }, () => 'three')],
      )
      const kept =
        code === 0 ? run.records[0]!.conversations : run.failures[0]!.partial.conversations
      assert.deepEqual(
        (kept as { content: string }[]).map(({ content }) => content),
        ['one', 're one', 'two', 're two', ...(code === 0 ? ['three', 're three'] : [])],
      )
    }
  })

  test('turns: one that is cut counts, and with --on-length fail is the end of the record', async (t) => {
    let tries = 0
    const server = await serve(t, (request, response) => {
      const text = lastMessage(request)
      if (text.startsWith('busy') && tries++ % 2 === 0) return json(response, {}, 500)
      json(
        response,
        chat(`re ${text}`, {}, { finish_reason: text.endsWith('cut') ? 'length' : 'stop' }),
      )
    })
    const input =
      '{"id":1,"turns":["cut","b"]}\n{"id":2,"turns":["a","busy cut","c"]}\n{"id":3,"turns":["a"]}\n'
    const asked = (args: string[]) => fanout(server.url, [...MODEL, '-c', '1', ...args], { input })
    const kept = await asked([])
    assert.equal(kept.code, 0, kept.stderr)
    assert.equal(kept.stats.finish.length, 2)
    assert.equal(server.requests.length, 7)
    const run = await asked(['--on-length', 'fail'])
    assert.equal(run.code, 1)
    assert.deepEqual(
      run.records.map(({ id }) => id),
      [3],
    )
    assert.equal(run.stats.finish.length, 2)
    assert.equal(server.requests.length, 7 + 5)
    // What was generated was paid.
    assert.equal(run.stats.tokens.completion, 4 * 5)
    const [first, second] = run.failures.toSorted((a, b) => Number(a.id) - Number(b.id))
    assert.deepEqual([first!.error.code, first!.error.attempts], ['cut-by-length', 1])
    assert.deepEqual(first!.partial, { reasoning_content: '', content: 're cut' })
    assert.deepEqual([second!.error.code, second!.error.attempts], ['cut-by-length', 3])
    assert.equal(second!.partial.content, 're busy cut')
    assert.deepEqual(second!.partial.conversations, [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 're a' },
    ])
  })
})
