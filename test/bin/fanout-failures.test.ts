import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FanoutResult, fanout, prompts } from '../support/fanout.ts'
import {
  answerWell,
  beginStream,
  chat,
  DONE,
  delta,
  events,
  json,
  lastMessage,
  serve,
  streamed,
  USAGE_CHUNK,
} from '../support/servers.ts'

const MODEL = ['--model', 'm']
const NO_RETRY = [...MODEL, '--retries', '0']
const ONE = '{"id":1,"prompt":"p"}\n'

/** A way to fail on the wire, and what it must be called. */
interface Fault {
  name: string
  code: string
  args?: string[]
  /** What of the answer must be kept. */
  partial?: { content: string; reasoning_content: string }
  message?: RegExp
  status?: number | null
  fail: (response: ServerResponse) => void
}

const hang = (): void => {}
const HALF = delta({ reasoning: 'th' })
const HALF_TEXT = delta({ content: 'ha' })
const PARTIAL = { content: 'ha', reasoning_content: 'th' }

/** Sends half an answer, then does what is given. */
function half(then: (response: ServerResponse) => void): (response: ServerResponse) => void {
  return (response) => {
    beginStream(response).write(events(HALF, HALF_TEXT))
    // The client has it before the end comes.
    setTimeout(() => then(response), 30)
  }
}

const FAULTS: Fault[] = [
  {
    name: 'a reset before the headers',
    code: 'reset',
    status: null,
    fail: (response) => void response.socket!.resetAndDestroy(),
  },
  {
    name: 'a connection closed before the headers',
    code: 'closed',
    fail: (response) => void response.socket!.end(),
  },
  {
    name: 'a reset in the stream',
    code: 'reset',
    status: 200,
    partial: PARTIAL,
    fail: half((response) => response.socket!.resetAndDestroy()),
  },
  {
    name: 'a connection closed in the stream',
    code: 'closed',
    partial: PARTIAL,
    fail: half((response) => response.socket!.destroy()),
  },
  {
    name: 'a body shorter than its length',
    code: 'closed',
    args: ['--no-stream'],
    fail: (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' })
      response.write('{"choices":[')
      setTimeout(() => response.socket!.destroy(), 20)
    },
  },
  {
    name: 'bytes that are no HTTP',
    code: 'network',
    fail: (response) => void response.socket!.end('garbage\r\n\r\n'),
  },
  {
    name: 'an HTML page',
    code: 'not-json',
    status: 200,
    message: /<html> Log in/,
    fail: (response) => {
      response.writeHead(200, { 'content-type': 'text/html' })
      response.end('<html>\n  Log in</html>')
    },
  },
  {
    name: 'JSON cut off',
    code: 'not-json',
    fail: (response) => json(response, '{"choices":[{"mes'),
  },
  { name: 'an empty body', code: 'not-json', fail: (response) => json(response, '') },
  { name: 'JSON that is no object', code: 'not-json', fail: (response) => json(response, '[]') },
  { name: 'no choices', code: 'no-choices', fail: (response) => json(response, { choices: [] }) },
  { name: 'no member choices', code: 'no-choices', fail: (response) => json(response, {}) },
  {
    name: 'a stream without choices',
    code: 'no-choices',
    fail: (response) => void beginStream(response).end(events(DONE)),
  },
  {
    name: 'an event named error with JSON of its own',
    code: 'in-band-error',
    partial: PARTIAL,
    message: /the server says: {"reason":"out of memory"}/,
    fail: half((response) => response.end('event: error\ndata: {"reason":"out of memory"}\n\n')),
  },
  {
    name: 'an event named error with a text',
    code: 'in-band-error',
    message: /the server says: worker died/,
    fail: (response) => void beginStream(response).end('event: error\ndata: worker died\n\n'),
  },
  {
    name: 'a detail in place of an answer',
    code: 'in-band-error',
    message: /the server says: Not authenticated/,
    fail: (response) => json(response, { detail: 'Not authenticated' }),
  },
  {
    name: 'a message in place of a stream',
    code: 'in-band-error',
    message: /the server says: quota exceeded/,
    fail: (response) => void beginStream(response).end(events({ message: 'quota exceeded' }, DONE)),
  },
  {
    name: "vLLM's error in a stream",
    code: 'in-band-error',
    partial: PARTIAL,
    message: /CUDA out of memory/,
    fail: half((response) =>
      response.end(events({ error: { message: 'CUDA out of memory', code: 500 } }, DONE)),
    ),
  },
  {
    name: "SGLang's flat error in a stream",
    code: 'in-band-error',
    message: /it broke/,
    fail: (response) =>
      void beginStream(response).end(events({ object: 'error', message: 'it broke' }, DONE)),
  },
  {
    name: 'an error in a body of status 200',
    code: 'in-band-error',
    message: /late/,
    fail: (response) => json(response, { error: 'late' }),
  },
  {
    name: 'an event that is no JSON',
    code: 'not-json',
    partial: PARTIAL,
    fail: half((response) => response.end(`data: {"choi\n\n${DONE}`)),
  },
  {
    name: 'a stream without finish_reason',
    code: 'no-finish',
    partial: PARTIAL,
    fail: half((response) => response.end(DONE)),
  },
  {
    name: 'a stream whose finish_reason is an empty text',
    code: 'no-finish',
    partial: { reasoning_content: '', content: 'half' },
    fail: (response) => beginStream(response).end(events(delta({ content: 'half' }, ''))),
  },
  {
    name: 'finish_reason abort in a stream',
    code: 'aborted',
    partial: PARTIAL,
    fail: half((response) => response.end(events(delta({}, 'abort'), DONE))),
  },
  {
    name: 'finish_reason abort in a body',
    code: 'aborted',
    fail: (response) => json(response, chat('x', {}, { finish_reason: 'abort' })),
  },
  {
    name: 'no answer at all',
    code: 'first-token-timeout',
    args: ['--first-token-timeout', '5'],
    message: /^Request timed out \(first token 5 s/,
    status: null,
    fail: hang,
  },
  {
    name: 'only headers, not streamed',
    code: 'first-token-timeout',
    args: ['--no-stream', '--first-token-timeout', '5s', '--idle-timeout', '5s'],
    fail: (response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.flushHeaders()
    },
  },
  {
    name: 'comments and a role are no token',
    code: 'first-token-timeout',
    args: ['--first-token-timeout', '10s'],
    fail: (response) => {
      beginStream(response).write(events(delta({ role: 'assistant', content: '' })))
      const timer = setInterval(() => response.write(': keep-alive\n\n'), 10)
      response.on('close', () => clearInterval(timer))
    },
  },
  {
    name: 'silence in the stream',
    code: 'idle-timeout',
    args: ['--idle-timeout', '5000ms'],
    partial: PARTIAL,
    message: /^Request timed out \(idle 5 s/,
    fail: half(hang),
  },
  {
    name: 'silence in a body',
    code: 'idle-timeout',
    args: ['--no-stream', '--idle-timeout', '5s'],
    fail: (response) => {
      response.writeHead(200, { 'content-type': 'application/json' })
      response.write('{')
    },
  },
  {
    name: 'a total timeout while tokens arrive',
    code: 'timeout',
    args: ['--timeout', '10s'],
    message: /^Request timed out \(total 10 s/,
    fail: (response) => {
      beginStream(response)
      const timer = setInterval(() => response.write(events(HALF_TEXT)), 5)
      response.on('close', () => clearInterval(timer))
    },
  },
]

describe('ways to fail', { concurrency: true }, () => {
  for (const { name, code, args = [], partial, message, status, fail } of FAULTS) {
    test(`${name}: ${code}, retried, and the pieces kept`, async (t) => {
      let faults = 0
      const server = await serve(t, (request, response) => {
        if (faults++ < 1 || lastMessage(request) === 'bad') return fail(response)
        answerWell(request, response)
      })
      const input = '{"id":"ok","prompt":"p"}\n{"id":"no","prompt":"bad"}\n'
      const options = { input, random: () => 0 }
      const run = await fanout(
        server.url,
        [...MODEL, '--retries', '1', '-c', '1', ...args],
        options,
      )
      assert.equal(run.code, 1, run.stderr)
      assert.equal(run.records[0]!.id, 'ok')
      assert.equal(run.records[0]!.attempts, 2)
      const [{ id, error, partial: kept }] = run.failures as [FanoutResult['failures'][0]]
      assert.equal(id, 'no')
      assert.equal(error.code, code, error.message)
      assert.equal(error.attempts, 2)
      assert.equal(error.retryable, true)
      if (message) assert.match(error.message, message)
      if (status !== undefined) assert.equal(error.http_status, status)
      if (partial) assert.deepEqual(kept, partial)
      assert.deepEqual(run.stats.retries_by_code, { [code]: 2 })
      assert.deepEqual(run.stats.failed_by_code, { [code]: 1 })
      const errors = run.stderr.split('\n').filter((line) => line.startsWith('ERROR'))
      assert.equal(errors.length, 1)
      assert.match(errors[0]!, /^ERROR sample no: .*attempt 2 of 2\)$/)
    })
  }

  test('a stream that was not asked for: why, and the way out', async (t) => {
    const server = await serve(t, (_request, response) => {
      beginStream(response).end(`: hi\n\n${streamed('4')}`)
    })
    const batch = JSON.stringify({
      custom_id: 'b',
      method: 'POST',
      url: '/v1/chat/completions',
      body: { model: 'm', messages: [{ role: 'user', content: 'p' }] },
    })
    const run = await fanout(server.url, [...NO_RETRY, '--no-stream', '-c', '1'], {
      input: `${ONE}${batch}\n`,
    })
    const said = run.failures.map(({ error }) => [error.code, error.message.split(': ')[0]])
    const why = 'the server streams although it was not asked to'
    assert.deepEqual(said, [
      ['not-json', `${why} (leave out --no-stream)`],
      [
        'not-json',
        `${why} (put the messages into a record of their own, which is streamed, instead of a batch line)`,
      ],
    ])
  })

  test('what breaks after the finish_reason costs no answer', async (t) => {
    const ends: ((response: ServerResponse) => void)[] = [
      (response) => response.socket!.resetAndDestroy(),
      (response) => response.socket!.destroy(),
      hang,
    ]
    const server = await serve(t, (_request, response, nth) => {
      beginStream(response).write(events(delta({ content: 'whole' }), delta({}, 'stop')))
      setTimeout(() => ends[nth]!(response), 30)
    })
    const args = [...NO_RETRY, '-c', '1', '--idle-timeout', '5s']
    const run = await fanout(server.url, args, { input: prompts(3) })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(server.requests.length, 3)
  })

  test('nor does what a server says after it, unless the finish_reason tells of an error', async (t) => {
    const said = [
      { error: { message: 'late' } },
      'event: error\ndata: late\n\n',
      'data: <html>late</html>\n\n',
    ]
    const server = await serve(t, (request, response) => {
      const [reason, nth] = lastMessage(request).split(' ') as [string, string]
      const parts = [delta({ content: 'whole' }), delta({}, reason), said[Number(nth)]!]
      beginStream(response).end(events(...parts, USAGE_CHUNK, DONE))
    })
    const input = ['stop', 'error', 'abort']
      .flatMap((reason) =>
        said.map((_, nth) => `{"id":"${reason} ${nth}","prompt":"${reason} ${nth}"}\n`),
      )
      .join('')
    const run = await fanout(server.url, NO_RETRY, { input })
    assert.deepEqual(run.records.map(({ id }) => id).sort(), ['stop 0', 'stop 1', 'stop 2'])
    for (const { usage } of run.records) assert.equal(usage.total_tokens, 14)
    const codes = new Set(run.failures.map(({ error }) => error.code))
    assert.deepEqual([...codes].sort(), ['in-band-error', 'not-json'])
  })

  test('a connection that nobody accepts: connect-timeout', async (t) => {
    const script =
      "const s = require('net').createServer().listen({port:0,host:'127.0.0.1',backlog:1}, () => console.log(s.address().port))"
    const child: ChildProcess = spawn(process.execPath, ['-e', script])
    const [chunk] = (await once(child.stdout!, 'data')) as [Buffer]
    const port = Number(chunk.toString())
    child.kill('SIGSTOP')
    const fillers = Array.from({ length: 6 }, () => connect(port, '127.0.0.1'))
    for (const filler of fillers) filler.on('error', () => {})
    t.after(() => {
      for (const filler of fillers) filler.destroy()
      child.kill('SIGKILL')
    })
    await sleep(50)
    const run = await fanout(
      `http://127.0.0.1:${port}/v1`,
      [...NO_RETRY, '--connect-timeout', '5'],
      {
        input: ONE,
      },
    )
    assert.equal(run.failures[0]!.error.code, 'connect-timeout', run.stderr)
    assert.match(run.stderr, /ERROR sample 1: Request timed out \(connect 5 s, attempt 1 of 1\)/)
    assert.equal(run.code, 1)
  })

  test('the message and the defaults: idle 300 s, attempt 6 of 6, at any clock speed', async (t) => {
    const server = await serve(t, (_request, response) => half(hang)(response))
    const input = '{"id":17004,"prompt":"p"}\n'
    const run = await fanout(
      server.url,
      [...MODEL, '--clock-speed', '3000', '--connect-timeout', '0'],
      { input },
    )
    assert.match(
      run.stderr,
      /^ERROR sample 17004: Request timed out \(idle 300 s, attempt 6 of 6\)$/m,
    )
    assert.equal(server.requests.length, 6)
    assert.equal(run.code, 1)
  })
})

describe('statuses', { concurrency: true }, () => {
  test('408, 409, 425, 429, 500, 502, 503, 504 and 529 are retried', async (t) => {
    const statuses = [408, 409, 425, 429, 500, 502, 503, 504, 529]
    const failed = new Set<string>()
    const server = await serve(t, (request, response) => {
      const status = lastMessage(request)
      if (failed.has(status)) return answerWell(request, response)
      failed.add(status)
      json(response, { error: { message: `no ${status}` } }, Number(status))
    })
    const input = statuses.map((status) => `{"id":${status},"prompt":"${status}"}\n`).join('')
    const run = await fanout(server.url, MODEL, { input, random: () => 0 })
    assert.equal(run.code, 0, run.stderr)
    assert.deepEqual(
      run.records.map(({ attempts }) => attempts),
      statuses.map(() => 2),
    )
    const codes = Object.fromEntries(statuses.map((status) => [`http-${status}`, 1]))
    assert.deepEqual(run.stats.retries_by_code, codes)
    assert.equal(run.stats.outages, 0)
    assert.ok(server.gets.includes('/health'))
  })

  test('other statuses are not', async (t) => {
    const statuses = [301, 400, 401, 402, 403, 404, 405, 410, 413, 422, 501, 505]
    const server = await serve(t, (request, response) => {
      const status = lastMessage(request)
      if (status === '200') return answerWell(request, response)
      json(response, { error: { message: `no ${status}`, code: Number(status) } }, Number(status))
    })
    const input = [200, ...statuses]
      .map((status) => `{"id":${status},"prompt":"${status}"}\n`)
      .join('')
    const run = await fanout(server.url, [...MODEL, '-c', '1'], { input })
    assert.equal(run.code, 1)
    assert.deepEqual(
      run.failures.map(({ error }) => [
        error.http_status,
        error.code,
        error.attempts,
        error.retryable,
      ]),
      statuses.map((status) => [status, `http-${status}`, 1, false]),
    )
    assert.match(run.stderr, /^ERROR sample 422: HTTP 422: .*no 422 \(attempt 1 of 1\)$/m)
    assert.equal(server.requests.length, statuses.length + 1)
  })

  test('a status counts, also where its body is a stream of events', async (t) => {
    const server = await serve(t, (_request, response) => {
      response.writeHead(400).end('event: error\ndata: {"error":{"message":"too long"}}\n\n')
    })
    const run = await fanout(server.url, MODEL, { input: ONE })
    const { code, message, attempts } = run.failures[0]!.error
    assert.deepEqual([code, attempts], ['http-400', 1])
    assert.match(message, /too long/)
  })

  test("SGLang's flat form and HTML pages of proxies are read, in one line", async (t) => {
    const server = await serve(t, (_request, response, nth) => {
      if (nth === 0) return json(response, { object: 'error', message: 'flat\n\u001b[31mred' }, 400)
      response.writeHead(413, { 'content-type': 'text/html' })
      response.end('<html>\r\n<h1>413 Too Large</h1></html>')
    })
    const run = await fanout(server.url, [...NO_RETRY, '-c', '1'], { input: prompts(2) })
    assert.match(run.stderr, /^ERROR sample 1: HTTP 400: .*flat \\u001b\[31mred/m)
    assert.match(run.stderr, /^ERROR sample 2: HTTP 413: .*413 Too Large/m)
    assert.ok(!run.stderr.includes('\u001b'))
  })
})
