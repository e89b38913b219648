import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FanoutResult, fanout, prompts } from '../support/fanout.ts'
import { run } from '../support/run.ts'
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
import { settleable } from '../support/settleable.ts'

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

describe('time budgets', { concurrency: true }, () => {
  test('any byte keeps a stream alive, and no total limit is on', async (t) => {
    const server = await serve(t, async (_request, response) => {
      beginStream(response).write(events(delta({ content: 'a' })))
      for (let i = 0; i < 30; i++) {
        await sleep(20)
        response.write(':\n\n')
      }
      response.end(events(delta({ content: 'b' }, 'stop'), DONE))
    })
    // 30 times 20 ms are at least 30 s of server time.
    const args = [...NO_RETRY, '--idle-timeout', '20s', '--first-token-timeout', '20s']
    const run = await fanout(server.url, args, { input: ONE })
    assert.equal(run.code, 0, run.stderr)
    assert.ok(run.records[0]!.timing.first_token_ms! < run.records[0]!.timing.total_ms)
  })

  test('0 is none', async (t) => {
    const server = await serve(t, async (request, response) => {
      await sleep(60)
      answerWell(request, response)
    })
    const none = ['--connect-timeout', '0', '--first-token-timeout', '0', '--idle-timeout', '0']
    const run = await fanout(server.url, [...NO_RETRY, ...none, '--timeout', '0'], { input: ONE })
    assert.equal(run.code, 0, run.stderr)
  })

  test('time in our own queue does not count', async (t) => {
    const server = await serve(t, async (request, response) => {
      await sleep(40)
      answerWell(request, response)
    })
    const budgets = ['--timeout', '10s', '--first-token-timeout', '10s', '--connect-timeout', '10s']
    const run = await fanout(server.url, [...NO_RETRY, '-c', '1', ...budgets], {
      input: prompts(12),
    })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.stats.answered, 12)
  })

  test('a process that is stopped blames no request', async (t) => {
    const child = settleable<ChildProcess>()
    const server = await serve(t, async (request, response, nth) => {
      if (nth === 1) beginStream(response).write(events(delta({ content: 'a' })))
      if (nth !== 1) return void resumed.then(() => answerWell(request, response))
      await resumed
      response.end(events(delta({ content: 'b' }, 'stop'), DONE))
    })
    const resumed = (async () => {
      const process = await child.promise
      while (server.requests.length < 3) await sleep(10)
      await sleep(50)
      process.kill('SIGSTOP')
      await sleep(1200)
      process.kill('SIGCONT')
      await sleep(100)
    })()
    const budgets = ['--idle-timeout', '25s', '--first-token-timeout', '25s', '--timeout', '50s']
    const args = ['--url', server.url, ...NO_RETRY, '--clock-speed', '50', ...budgets]
    const result = await run('fanout-complete', args, {
      input: prompts(3),
      onStart: child.resolve,
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(server.requests.length, 3)
  })

  test('a process that is stopped while it asks for the models is not refused', async (t) => {
    const child = settleable<ChildProcess>()
    const asked = settleable<void>()
    const server = await serve(t, (request, response) => answerWell(request, response), {
      gets: {
        '/v1/models': (response) => {
          asked.resolve()
          void resumed.then(() => json(response, { data: [{ id: 'm' }] }))
        },
      },
    })
    const resumed = (async () => {
      const process = await child.promise
      await asked.promise
      process.kill('SIGSTOP')
      await sleep(1200)
      process.kill('SIGCONT')
      await sleep(20)
    })()
    // Ten seconds for a question are half a second here.
    const args = ['--url', server.url, '--clock-speed', '20']
    const result = await run('fanout-complete', args, { input: ONE, onStart: child.resolve })
    assert.equal(result.code, 0, result.stderr)
  })

  test('a reader of our output that is seconds late blames no request', async (t) => {
    const long = 'x'.repeat(100_000)
    const server = await serve(t, (_request, response) => {
      beginStream(response).end(streamed(long))
    })
    const args = ['--url', server.url, ...NO_RETRY, '--clock-speed', '50', '-c', '4']
    const result = await run('fanout-complete', [...args, '--idle-timeout', '20s'], {
      input: prompts(40),
      onStart: (child) => {
        child.stdout!.pause()
        setTimeout(() => child.stdout!.resume(), 1000)
      },
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.stdout.toString().split('\n').length, 41)
    assert.equal(server.requests.length, 40)
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

describe('pauses', { concurrency: true }, () => {
  /** Server time between the first request and the second at least, in ms. */
  const cases: [string, () => Record<string, string>, number][] = [
    ['Retry-After in seconds', () => ({ 'retry-after': '20' }), 20_000],
    ['Retry-After with a fraction', () => ({ 'retry-after': '10.5' }), 10_500],
    [
      'retry-after-ms before Retry-After',
      () => ({ 'retry-after-ms': '15000', 'retry-after': '900' }),
      15_000,
    ],
    // The run's clock is ahead of the wall's: what is left of a minute must still be most of it.
    [
      'Retry-After as a date',
      () => ({ 'retry-after': new Date(Date.now() + 60_000).toUTCString() }),
      10_000,
    ],
    ['a date that is over', () => ({ 'retry-after': new Date(0).toUTCString() }), 0],
    ['nonsense', () => ({ 'retry-after': 'soon' }), 0],
  ]
  for (const [name, headers, least] of cases) {
    test(name, async (t) => {
      const times: number[] = []
      const server = await serve(t, (request, response, nth) => {
        times.push(performance.now())
        if (nth > 0) return answerWell(request, response)
        for (const [header, value] of Object.entries(headers())) response.setHeader(header, value)
        json(response, {}, 429)
      })
      const run = await fanout(server.url, MODEL, { input: ONE, random: () => 0 })
      assert.equal(run.code, 0, run.stderr)
      const waited = (times[1]! - times[0]!) * 50
      // Timers may fire a millisecond early.
      assert.ok(waited >= least - 100, `${waited} of ${least}`)
    })
  }

  test('a Retry-After of hours is obeyed, and said once', async (t) => {
    const server = await serve(t, (request, response, nth) => {
      if (nth > 2) return answerWell(request, response)
      response.setHeader('retry-after', nth === 0 ? '600' : '10800')
      json(response, {}, 429)
    })
    const none = ['--connect-timeout', '0', '--first-token-timeout', '0', '--idle-timeout', '0']
    const args = [...MODEL, '-c', '1', '--clock-speed', '100000', ...none]
    const run = await fanout(server.url, args, { input: prompts(2) })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.stats.retries, 3)
    const warnings = run.stderr.split('\n').filter((line) => line.includes('Retry-After'))
    assert.deepEqual(warnings, [
      'fanout-complete: warning: the server asks to wait 3 h 0 m before the next try (Retry-After): ' +
        'the run does so [retry-after]',
    ])
  })

  test('x-ratelimit headers that say that nothing remains are waited for', async (t) => {
    const times: number[] = []
    const server = await serve(t, (request, response, nth) => {
      times.push(performance.now())
      response.setHeader('x-ratelimit-remaining-requests', nth === 0 ? '0' : '9')
      response.setHeader('x-ratelimit-reset-requests', '20s')
      answerWell(request, response)
    })
    const run = await fanout(server.url, [...MODEL, '-c', '1'], { input: prompts(3) })
    assert.equal(run.code, 0, run.stderr)
    const waited = (times[1]! - times[0]!) * 50
    assert.ok(waited >= 19_900, `${waited} of 20000`)
  })

  test('x-should-retry decides against the status, both ways', async (t) => {
    const server = await serve(t, (request, response, nth) => {
      if (nth === 2) return answerWell(request, response)
      response.setHeader('x-should-retry', String(nth === 1))
      json(response, {}, nth === 1 ? 400 : 500)
    })
    const run = await fanout(server.url, [...MODEL, '-c', '1'], {
      input: prompts(2),
      random: () => 0,
    })
    assert.deepEqual(
      run.failures.map(({ id, error }) => [id, error.code, error.attempts]),
      [[1, 'http-500', 1]],
    )
    assert.deepEqual(
      run.records.map(({ id, attempts }) => [id, attempts]),
      [[2, 2]],
    )
  })

  test('a waiting retry holds no slot', async (t) => {
    const order: string[] = []
    const server = await serve(t, (request, response, nth) => {
      order.push(lastMessage(request))
      if (nth > 0) return answerWell(request, response)
      response.setHeader('retry-after', '10')
      json(response, {}, 429)
    })
    const run = await fanout(server.url, [...MODEL, '-c', '1'], { input: prompts(4) })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(server.peak, 1)
    assert.deepEqual(order, ['p1', 'p2', 'p3', 'p4', 'p1'])
  })
})
