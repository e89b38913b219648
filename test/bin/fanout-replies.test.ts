import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fanout, prompts } from '../support/fanout.ts'
import {
  beginStream,
  chat,
  DONE,
  delta,
  events,
  json,
  lastMessage,
  type Seen,
  serve,
  streamed,
  USAGE_CHUNK,
} from '../support/servers.ts'

const MODEL = ['--model', 'm']

describe('what servers send', { concurrency: true }, () => {
  const input = '{"id":1,"prompt":"p"}\n'

  /** One record against a server that answers with these events or this body. */
  async function answerOf(
    t: { after(cleanUp: () => Promise<void>): void },
    reply: (request: Seen) => string | object,
    args: string[] = [],
  ) {
    const server = await serve(t, (request, response) => {
      const body = reply(request)
      if (typeof body === 'string') beginStream(response).end(body)
      else json(response, body)
    })
    return fanout(server.url, [...MODEL, '--retries', '0', ...args], { input })
  }

  for (const name of ['reasoning', 'reasoning_content', 'thinking']) {
    test(`${name} becomes reasoning_content`, async (t) => {
      const parts = [
        delta({ [name]: 'Ad' }),
        delta({ [name]: 'd.' }),
        delta({ content: '4' }, 'stop'),
      ]
      const run = await answerOf(t, () => events(...parts, USAGE_CHUNK, DONE))
      const expected = '{"role":"assistant","content":"4","reasoning_content":"Add."}'
      assert.ok(run.lines[0]!.includes(expected), run.lines[0])
      const message = { role: 'assistant', content: '4', [name]: 'Add.' }
      const whole = await answerOf(t, () => chat('', {}, { message }), ['--no-stream'])
      assert.ok(whole.lines[0]!.includes(expected), whole.lines[0])
    })
  }

  test('reasoning under two names is not doubled; nulls are nothing', async (t) => {
    const parts = [
      delta({ role: 'assistant', content: null, reasoning: null, tool_calls: null }),
      delta({ reasoning: 'r', reasoning_content: 'r' }),
      delta({ content: 'c', reasoning_content: null }, 'stop'),
    ]
    const run = await answerOf(t, () => events(...parts, DONE))
    assert.deepEqual(run.records[0]!.conversations[1], {
      role: 'assistant',
      content: 'c',
      reasoning_content: 'r',
    })
    assert.equal(run.records[0]!.usage, undefined)
  })

  test('several choices in one chunk, the first one last: it is the answer', async (t) => {
    const chunk = (first: string, second: string, finish: string | null): object => ({
      choices: [
        { index: 1, delta: { content: second }, finish_reason: finish },
        { index: 0, delta: { content: first }, finish_reason: finish },
      ],
    })
    const server = await serve(t, (_request, response) => {
      beginStream(response).end(events(chunk('a', '1', null), chunk('b', '2', 'stop'), DONE))
    })
    const run = await fanout(server.url, MODEL, { input: prompts(1) })
    assert.equal(run.records[0]?.conversations[1]?.content, 'ab', run.stderr)
  })

  test('comments, CRLF events, no space after data:, an unnamed event, no [DONE]', async (t) => {
    const text =
      `: keep-alive\n\n:\r\n\r\ndata:${JSON.stringify(delta({ content: 'a' }))}\r\n\r\n` +
      `event: message\nid: 7\ndata: ${JSON.stringify(delta({ content: 'é\u2028😀' }))}\n\n` +
      `: ping\n\ndata: ${JSON.stringify(delta({}, 'stop'))}\n\ndata: ${JSON.stringify(USAGE_CHUNK)}`
    const run = await answerOf(t, () => text)
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.records[0]!.conversations[1]!.content, 'aé\u2028😀')
    assert.equal(run.records[0]!.usage.total_tokens, 14)
  })

  test('events without data say nothing, and [DONE] may have blanks around it', async (t) => {
    const blank = 'data:\n\ndata: \n\nevent: message\ndata:   \n\n'
    const said = [delta({ content: 'a' }), blank, delta({ content: 'b' }, 'stop'), blank]
    const bodies = [
      events(blank, ...said, 'data:  [DONE] \n\n', delta({ content: 'c' })),
      events(blank, ...said, 'data: [DONE] '),
    ]
    for (const body of bodies) {
      const run = await answerOf(t, () => body)
      assert.equal(run.records[0]?.conversations[1]?.content, 'ab', run.stderr)
    }
    const failed = await answerOf(t, () => 'event: error\ndata:\n\n')
    assert.equal(failed.failures[0]!.error.code, 'in-band-error')
  })

  test('[DONE] ends the answer, whatever follows or never comes', async (t) => {
    let closed = 0
    const server = await serve(t, (_, response) => {
      response.once('close', () => closed++)
      beginStream(response).write(streamed('4'))
      setImmediate(() => response.write(events(delta({ content: ' and more' }))))
      response.write(events(delta({ content: ' and so on' })))
    })
    const run = await fanout(server.url, ['-c', '1'], { input: prompts(3) })
    assert.equal(run.code, 0, run.stderr)
    for (const { conversations, timing, attempts } of run.records) {
      assert.equal(conversations[1]!.content, '4')
      assert.equal(attempts, 1)
      // It would have been taken after --idle-timeout.
      assert.ok(timing.total_ms < 300_000)
    }
    assert.equal(run.records.length, 3)
    assert.equal(server.requests.length, 3)
    while (closed < 3) await new Promise((resolve) => setImmediate(resolve))
  })

  test('a reply that ends a moment after its [DONE] keeps its connection', async (t) => {
    const sockets = new Set<unknown>()
    const server = await serve(t, (_, response) => {
      sockets.add(response.socket)
      beginStream(response).write(streamed('4'))
      setImmediate(() => response.end())
    })
    // A clock that runs fast would give up the connection of a busy machine.
    const args = ['-c', '1', '--clock-speed', '1']
    const run = await fanout(server.url, args, { input: prompts(20) })
    assert.equal(run.records.length, 20, run.stderr)
    assert.ok(sockets.size <= 2, `${sockets.size} connections`)
  })

  test('a plain JSON body, or a stream by another name, to a streaming request', async (t) => {
    const plain = await answerOf(t, () => chat('plain'))
    assert.equal(plain.records[0]!.conversations[1]!.content, 'plain')
    const server = await serve(t, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      response.end(streamed('unnamed'))
    })
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.records[0]!.conversations[1]!.content, 'unnamed')
  })

  test('a stream without a content type, whatever line it begins with', async (t) => {
    const heads = [
      ': PROCESSING\n\n',
      ':\n',
      'event: message\n',
      'id: 1\n',
      'retry: 5\n',
      'data:\n\n',
    ]
    const server = await serve(t, (request, response) => {
      response.writeHead(200).end(lastMessage(request) + streamed('unnamed'))
    })
    const input = heads.map((prompt) => `${JSON.stringify({ prompt })}\n`).join('')
    const run = await fanout(server.url, [...MODEL, '--retries', '0'], { input })
    assert.equal(run.stderr.match(/^ERROR/m), null, run.stderr)
    for (const { conversations } of run.records) assert.equal(conversations[1]!.content, 'unnamed')
    assert.equal(run.records.length, heads.length)
  })

  test('a whole answer under the content type of a stream', async (t) => {
    const body = JSON.stringify(chat('whole'))
    const server = await serve(t, async (request, response) => {
      const start = lastMessage(request)
      beginStream(response)
      for (const piece of [start, body.slice(0, 9), body.slice(9)]) {
        response.write(piece)
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    })
    const input = ['', '\n  ', '\r\n'].map((prompt) => `${JSON.stringify({ prompt })}\n`).join('')
    const run = await fanout(server.url, [...MODEL, '--retries', '0'], { input })
    assert.equal(run.stderr.match(/^ERROR/m), null, run.stderr)
    for (const { conversations } of run.records) assert.equal(conversations[1]!.content, 'whole')
    assert.equal(run.records.length, 3)
    const refused = await answerOf(t, () => '{"error":{"message":"sorry"}}')
    assert.match(refused.failures[0]!.error.message, /sorry/)
  })

  test('a stream one byte at a time', async (t) => {
    const bytes = Buffer.from(streamed('é😀'))
    const server = await serve(t, async (_request, response) => {
      beginStream(response)
      for (const byte of bytes) {
        response.write(Buffer.from([byte]))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    })
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.records[0]!.conversations[1]!.content, 'é😀')
  })

  test('tool calls in pieces, and no content', async (t) => {
    const call = (args: string, more: object = {}): object =>
      delta({ tool_calls: [{ index: 0, function: { arguments: args }, ...more }] })
    const head = { id: 'c1', type: 'function', function: { name: 'f', arguments: '' } }
    const parts = [call('', head), call('{"a"'), call(':1}'), delta({}, 'tool_calls')]
    const run = await answerOf(t, () => events(...parts, DONE))
    assert.equal(run.code, 0, run.stderr)
    const [, answer] = run.records[0]!.conversations as unknown as [
      unknown,
      { content: null; tool_calls: { function: { name: string; arguments: string } }[] },
    ]
    assert.equal(answer.content, null)
    assert.deepEqual(answer.tool_calls[0]!.function, { name: 'f', arguments: '{"a":1}' })
  })

  test('lone surrogates and control characters in answers stay JSON', async (t) => {
    const content = 'a\ud800b\u0000\u001b\n"\\'
    const run = await answerOf(t, () => chat(content))
    assert.equal(run.records[0]!.conversations[1]!.content, content)
    assert.ok(run.lines[0]!.includes('\\ud800b\\u0000'), run.lines[0])
  })

  test('an empty finish_reason is none, whether an event or a whole answer has it', async (t) => {
    const parts = ['a', 'b', 'c', 'd'].map((content) => delta({ content }, ''))
    const said = await answerOf(t, () => events(...parts, delta({}, 'stop'), delta({}, ''), DONE))
    assert.equal(said.records[0]!.conversations[1]!.content, 'abcd', said.stderr)
    assert.equal(said.records[0]!.finish_reason, 'stop')
    const whole = await answerOf(t, () => chat('abcd', {}, { finish_reason: '' }), ['--no-stream'])
    assert.equal(whole.records[0]!.finish_reason, null)
  })

  test('finish_reason length, content_filter and empty content are kept and counted', async (t) => {
    for (const [reason, count] of [
      ['length', 'length'],
      ['content_filter', 'content_filter'],
    ]) {
      const run = await answerOf(t, () => events(delta({ content: 'x' }, reason!), DONE))
      assert.equal(run.code, 0, run.stderr)
      assert.equal(run.records[0]!.finish_reason, reason)
      const finish = (run.stats as unknown as { finish: Record<string, number> }).finish
      assert.equal(finish[count!], 1)
      assert.match(run.stderr, /^fanout-complete: 1 record: 1 answered, /m)
      const cut = 'warning: 1 answer is cut by the token limit (finish_reason length)\n'
      assert.equal(run.stderr.includes(cut), reason === 'length', run.stderr)
    }
    const empty = await answerOf(t, () => events(delta({ content: '' }), delta({}, 'stop'), DONE))
    assert.equal(empty.records[0]!.conversations[1]!.content, '')
    assert.equal((empty.stats as unknown as { finish: { empty: number } }).finish.empty, 1)
    assert.match(
      empty.stderr,
      /warning: 1 answer is empty \(dedupe-completed --redo empty runs it again\)$/m,
    )
  })

  test('--on-length fail', async (t) => {
    const reply = events(delta({ content: 'half' }, 'length'), DONE)
    const run = await answerOf(t, () => reply, ['--on-length', 'fail'])
    assert.equal(run.code, 1)
    assert.deepEqual(run.lines, [])
    assert.equal(run.failures[0]!.error.code, 'cut-by-length')
    assert.equal(run.failures[0]!.partial.content, 'half')
    assert.deepEqual(run.failures[0]!.input, { id: 1, prompt: 'p' })
  })

  test('--on-length fail where all fail so goes on under --tpm', async (t) => {
    const reply = events(delta({ content: 'half' }, 'length'), USAGE_CHUNK, DONE)
    const server = await serve(t, (_, response) => void beginStream(response).end(reply))
    const args = ['--on-length', 'fail', '--tpm', '1000000', '-c', '2']
    const run = await fanout(server.url, args, { input: prompts(12) })
    assert.equal(run.failures.length, 12, run.stderr)
    assert.equal(run.stats.left, 0)
  })
})
