import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { Interrupt } from '../../src/cli/interrupt.ts'
import { type Answered, type FanoutResult, fanout, prompts } from '../support/fanout.ts'
import { newFolder } from '../support/run.ts'
import {
  answerWell,
  beginStream,
  chat,
  DONE,
  deadUrl,
  delta,
  events,
  json,
  lastMessage,
  type Seen,
  serve,
  serveTcp,
  streamed,
} from '../support/servers.ts'

const MODEL = ['--model', 'm']
const ONE = '{"id":1,"prompt":"p"}\n'
const NOTHING = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'
const KEY = 'sk-very-secret-1234567890'

/** Lines of standard error that are neither warnings, counts nor progress. */
function errorsOf({ stderr }: FanoutResult): string[] {
  return stderr
    .split('\n')
    .filter((line) => line !== '' && !/warning: |records?: |^Progress: |to go on: /.test(line))
}

describe('the model', { concurrency: true }, () => {
  test('is the only one that the server lists, asked for once', async (t) => {
    const well = (request: Seen, response: Parameters<typeof answerWell>[1]): void =>
      answerWell(request, response)
    const server = await serve(t, well, { models: ['Org/Name"x'] })
    const run = await fanout(`${server.url}/`, [], { input: prompts(3) })
    assert.equal(run.code, 0, run.stderr)
    assert.deepEqual(server.gets, ['/v1/models'])
    for (const { body } of server.requests) assert.equal(JSON.parse(body).model, 'Org/Name"x')
  })

  for (const status of [429, 500, 502, 503, 504]) {
    test(`${status} is asked again as the server says, until it lists them`, async (t) => {
      let asked = 0
      const server = await serve(t, answerWell, {
        gets: {
          '/v1/models': (response) => {
            if (++asked === 3) return json(response, { data: [{ id: 'late' }] })
            response.setHeader('retry-after', '2')
            json(response, { error: { message: 'warming up' } }, status)
          },
        },
      })
      const run = await fanout(server.url, [], { input: prompts(2) })
      assert.equal(run.code, 0, run.stderr)
      assert.equal(asked, 3)
      assert.equal(JSON.parse(server.requests[0]!.body).model, 'late')
      const told = new RegExp(
        `warning: HTTP ${status} for /models: .*warming up.*asking again`,
        'g',
      )
      assert.equal(run.stderr.match(told)?.length, 1, run.stderr)
    })
  }

  test('503 for longer than --max-outage ends the run', async (t) => {
    const server = await serve(t, answerWell, {
      gets: { '/v1/models': (response) => json(response, { message: 'warming up' }, 503) },
    })
    const run = await fanout(server.url, ['--max-outage', '3s'], { input: prompts(2) })
    assert.equal(run.code, 2)
    assert.equal(errorsOf(run).length, 1, run.stderr)
    assert.match(run.stderr, /HTTP 503 for \/models.*warming up.*\[refused-by-server\]\n/)
    assert.equal(run.stats.left, run.stats.records)
    assert.ok(server.gets.length > 1)
  })

  test('a first Ctrl-C ends the wait for a busy server', async (t) => {
    const interrupt = new Interrupt()
    const server = await serve(t, answerWell, {
      gets: {
        '/v1/models': (response) => {
          response.setHeader('retry-after', '1000000')
          json(response, {}, 503)
          response.once('close', () => setImmediate(() => interrupt.raise('SIGINT')))
        },
      },
    })
    const run = await fanout(server.url, ['--max-outage', '1000h'], {
      input: prompts(2),
      interrupt,
    })
    assert.equal(run.code, 130, run.stderr)
    assert.equal(run.stats.left, run.stats.records)
  })

  test('a query of --url goes with every request, and is not shown', async (t) => {
    const search = '?api-version=2&key=hidden'
    const server = await serve(t, answerWell, {
      gets: {
        [`/v1/models${search}`]: (response) => json(response, { data: [{ id: 'm' }] }),
      },
    })
    const run = await fanout(`${server.url}${search}`, [], { input: ONE })
    assert.equal(run.code, 0, run.stderr)
    assert.deepEqual(server.gets, [`/v1/models${search}`])
    assert.equal(server.requests[0]!.path, `/v1/chat/completions${search}`)
    assert.ok(!`${run.stderr}${run.stdout}${JSON.stringify(run.stats)}`.includes('hidden'))
  })

  test('one of several, or of none, must be named', async (t) => {
    for (const models of [['a', 'b\u001b'], []]) {
      const server = await serve(t, answerWell, { models })
      const run = await fanout(server.url, [], { input: prompts(3) })
      assert.equal(run.code, 2)
      assert.equal(run.stats.left, 3)
      const errors = errorsOf(run)
      assert.equal(errors.length, 1, run.stderr)
      assert.match(
        errors[0]!,
        models.length > 0 ? /several models.*--model: a, b/ : /lists no model/,
      )
      assert.ok(!run.stderr.includes('\u001b'))
      assert.equal(server.requests.length, 0)
    }
  })

  test('an empty input asks no server, whatever is wrong with it', async () => {
    for (const input of ['', '\n', ' \r\n\n']) {
      const run = await fanout(await deadUrl(), [], { input })
      assert.equal(run.code, 0, run.stderr)
      assert.deepEqual(run.lines, [])
      assert.equal(run.stats.records, 0)
    }
  })
})

describe('a server that cannot be used ends the run with one line', { concurrency: true }, () => {
  for (const args of [[], MODEL]) {
    test(`nobody listens, with ${args.length > 0 ? 'and' : 'out'} a model`, async () => {
      const url = await deadUrl()
      const run = await fanout(url, args, { input: prompts(5) })
      assert.equal(run.code, 2)
      const errors = errorsOf(run)
      assert.equal(errors.length, 1, run.stderr)
      assert.ok(errors[0]!.includes(url) && errors[0]!.includes('curl'), errors[0])
      assert.equal(run.stats.left, 5)
    })
  }

  test('a name that does not exist', async () => {
    const run = await fanout('http://no-such-host.invalid:1/v1', MODEL, { input: prompts(2) })
    assert.equal(run.code, 2)
    assert.equal(errorsOf(run).length, 1, run.stderr)
  })

  test('it speaks no HTTP', async (t) => {
    const url = await serveTcp(t, (socket) => void socket.end('SSH-2.0-OpenSSH_9\r\n'))
    const run = await fanout(url, [], { input: prompts(2) })
    assert.equal(run.code, 2)
    assert.equal(errorsOf(run).length, 1, run.stderr)
  })

  for (const status of [401, 403, 404]) {
    test(`${status} before anything has succeeded`, async (t) => {
      const server = await serve(t, (_request, response) =>
        json(response, { error: { message: 'the model `m` is not for you' } }, status),
      )
      const run = await fanout(server.url, MODEL, { input: prompts(20) })
      assert.equal(run.code, 2)
      const errors = errorsOf(run)
      assert.equal(errors.length, 1, run.stderr)
      assert.ok(errors[0]!.includes(`HTTP ${status}`) && errors[0]!.includes('not for you'))
      assert.equal(run.stats.failed, 0)
      assert.equal(run.stats.left, run.stats.records)
    })
    test(`${status} for /models`, async (t) => {
      const server = await serve(t, answerWell, {
        gets: { '/v1/models': (response) => json(response, { message: 'go away' }, status) },
      })
      const run = await fanout(server.url, [], { input: ONE })
      assert.equal(run.code, 2)
      assert.equal(errorsOf(run).length, 1, run.stderr)
      assert.equal(server.requests.length, 0)
    })
  }
})

describe('outages', { concurrency: true }, () => {
  test('a server that goes and comes back costs no attempt and loses nothing', async (t) => {
    let back: Promise<void> | undefined
    const server = await serve(t, (request, response, nth) => {
      if (nth !== 5) return void setTimeout(() => answerWell(request, response), 20)
      back = (async () => {
        await server.down()
        await new Promise((resolve) => setTimeout(resolve, 300))
        await server.up()
      })()
    })
    const args = [...MODEL, '-c', '4', '--retries', '0']
    const run = await fanout(server.url, args, { input: prompts(12) })
    await back
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.stats.answered, 12)
    assert.equal(run.stats.outages, 1)
    assert.ok(run.records.every(({ attempts }) => attempts === 1))
    assert.match(run.stderr, /warning: .*\[outage\]/)
    assert.match(run.stderr, /is back after \d+ s/)
  })

  test('503 with a sick /health is an outage, with a well one an attempt', async (t) => {
    let sick = true
    const server = await serve(
      t,
      (request, response, nth) => {
        if (nth === 0) return answerWell(request, response)
        if (sick) return json(response, { error: 'engine dead' }, 503)
        answerWell(request, response)
      },
      {
        gets: {
          '/health': (response) => {
            response.writeHead(sick ? 503 : 200).end()
            if (server.gets.length > 3) sick = false
          },
        },
      },
    )
    const args = [...MODEL, '-c', '1', '--retries', '0']
    const run = await fanout(server.url, args, { input: prompts(3) })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.stats.outages, 1)
  })

  test('/models is asked where /health is 404', async (t) => {
    const server = await serve(t, (_request, response) => json(response, {}, 502), {
      gets: { '/health': (response) => json(response, {}, 404) },
    })
    const run = await fanout(server.url, [...MODEL, '--retries', '1'], { input: ONE })
    assert.equal(run.code, 1)
    assert.equal(run.failures[0]!.error.attempts, 2)
    assert.ok(server.gets.includes('/v1/models'))
  })

  test('--max-outage: exit 2, and what is finished is written', async (t) => {
    const server = await serve(t, (request, response, nth) => {
      if (nth < 2) return answerWell(request, response)
      void server.down()
    })
    const args = [...MODEL, '-c', '1', '--max-outage', '10s']
    const run = await fanout(server.url, args, { input: prompts(5) })
    assert.equal(run.code, 2)
    assert.equal(run.records.length, 2)
    assert.equal(run.stats.answered, 2)
    assert.match(run.stderr, /--max-outage/)
    assert.doesNotMatch(run.stderr, /^ERROR sample/m)
  })
})

describe('keys and headers', { concurrency: true }, () => {
  const unauthorised = (request: Seen): boolean => request.headers.authorization !== `Bearer ${KEY}`

  test('the key comes from the environment or a file and is sent', async (t) => {
    const server = await serve(t, (request, response) => {
      if (unauthorised(request)) return json(response, {}, 401)
      answerWell(request, response)
    })
    const file = join(newFolder(), 'key')
    writeFileSync(file, ` ${KEY}\n`)
    const fromEnvironment = await fanout(server.url, MODEL, {
      input: ONE,
      env: { OPENAI_API_KEY: KEY },
    })
    assert.equal(fromEnvironment.code, 0, fromEnvironment.stderr)
    const fromFile = await fanout(server.url, [...MODEL, '--api-key-file', file], {
      input: ONE,
      env: { OPENAI_API_KEY: 'other' },
    })
    assert.equal(fromFile.code, 0, fromFile.stderr)
    assert.ok(
      server.requests.every(({ headers }) => headers['content-type'] === 'application/json'),
    )
  })

  test('a key that a server echoes is printed nowhere', async (t) => {
    const server = await serve(t, (request, response) => {
      const said = lastMessage(request)
      const authorization = String(request.headers.authorization)
      if (said === 'well') return answerWell(request, response)
      if (said === 'json')
        return json(response, { error: { message: `bad ${authorization}` } }, 400)
      if (said === 'text')
        return void response.writeHead(422).end(`<b>${'x'.repeat(170)} ${authorization}</b>`)
      if (said === 'stream') {
        const error = events(delta({ content: 'hm' }), { error: { message: authorization } })
        return void beginStream(response).end(error)
      }
      json(response, `{"choices": "${authorization}`)
    })
    const words = ['well', 'json', 'text', 'stream', 'cut']
    const input = words.map((word) => `{"id":"${word}","prompt":"${word}"}\n`).join('')
    const headers = join(newFolder(), 'headers')
    writeFileSync(headers, `Authorization: Bearer ${KEY}\n\nX-Own: 1\n`)
    const ways: [string[], Record<string, string>][] = [
      [[], { OPENAI_API_KEY: KEY }],
      [['--header-file', headers], {}],
    ]
    for (const [more, env] of ways) {
      const args = [...MODEL, '-c', '1', '--retries', '0', '-v', ...more]
      const run = await fanout(server.url, args, { input, env })
      assert.equal(run.code, 1)
      assert.equal(run.failures.length, 4)
      const all = [run.stderr, run.stdout, ...run.failureLines, JSON.stringify(run.stats)].join(
        '\n',
      )
      assert.ok(!all.includes(KEY.slice(0, 12)), all)
    }
    assert.equal(server.requests.at(-1)!.headers['x-own'], '1')
    assert.ok(!unauthorised(server.requests.at(-1)!))
  })

  test('what a header file says is masked in messages where it is a secret', async (t) => {
    const secrets = {
      authorization: 'Basic dTpw',
      'x-api-key': 'k3y',
      'api-key': '12',
      'x-access-token': 't0k',
      cookie: 'a=c00kie; session=s3ss',
      'x-lane': 'blue-and-green',
    }
    const server = await serve(t, ({ headers }, response) => {
      const said = Object.keys(secrets).map((name) => `${name} is ${String(headers[name])}.`)
      json(response, { error: { message: said.join(' ') } }, 400)
    })
    const file = join(newFolder(), 'headers')
    writeFileSync(
      file,
      Object.entries(secrets)
        .map((header) => `${header.join(': ')}\n`)
        .join(''),
    )
    const args = [...MODEL, '--header-file', file]
    const run = await fanout(server.url, args, { input: ONE })
    const told = run.failures[0]!.error.message
    assert.match(
      told,
      /authorization is Basic \*{3}\. x-api-key is \*{3}\. api-key is \*{3}\. x-access-token is \*{3}\. cook/,
    )
    assert.match(told, /cookie is \*{3}\. x-lane is blue-and-green\./)
    assert.ok(!/dTpw|k3y|12\.|t0k|c00kie|s3ss/.test(run.stderr), run.stderr)
  })

  test('no answer is changed, whatever words of it are a key or stand in a header', async (t) => {
    const said = 'The assistant answers in application/json'
    const call = { id: 'assistant', function: { name: 'f', arguments: '{"a":"assistant"}' } }
    const message = { role: 'assistant', reasoning: said, content: said, tool_calls: [call] }
    const choice = { index: 0, message, finish_reason: 'stop', logprobs: { content: [said] } }
    const body = JSON.stringify({ model: 'assistant', choices: [choice] })
    const server = await serve(t, (request, response) => {
      const streams = (JSON.parse(request.body) as { stream?: boolean }).stream
      if (!streams) return json(response, body)
      if (lastMessage(request) === 'cut') {
        return void beginStream(response).end(events(delta({ content: said })))
      }
      beginStream(response).end(events(delta(message), delta({}, 'stop'), DONE))
    })
    const file = join(newFolder(), 'headers')
    writeFileSync(file, 'Accept: application/json\nX-Api-Key: application/json\n')
    const batch = { custom_id: 'b', url: '/v1/chat/completions', body: { messages: [] } }
    const records = [{ id: 1, prompt: 'p' }, { id: 2, prompt: 'cut' }, batch]
    const input = records.map((record) => `${JSON.stringify(record)}\n`).join('')
    const env = { OPENAI_API_KEY: 'assistant' }
    const args = [...MODEL, '--retries', '0', '--header-file', file]
    const { lines, failures } = await fanout(server.url, args, { input, env })
    const answers = lines.map((line) => JSON.parse(line) as Answered & { response?: object })
    const [streamedOne] = answers.filter(({ id }) => id === 1)
    assert.deepEqual(streamedOne!.conversations.at(-1), {
      role: 'assistant',
      content: said,
      reasoning_content: said,
      tool_calls: [call],
    })
    assert.ok(lines.some((line) => line.includes('"custom_id":"b"') && line.includes(body)))
    assert.equal(failures[0]!.partial.content, said)
  })

  test('a key that a server echoes as part of an address is masked too', async (t) => {
    const key = 'sk+very/secret=='
    const server = await serve(t, ({ headers }, response) => {
      const echoed = encodeURIComponent(headers.authorization!.slice('Bearer '.length))
      const forms = [echoed, echoed.toLowerCase(), echoed.replaceAll('%2F', '/')]
      json(response, { error: { message: forms.map((form) => `?key=${form}`).join(' ') } }, 400)
    })
    const run = await fanout(server.url, MODEL, { input: ONE, env: { OPENAI_API_KEY: key } })
    assert.equal(
      run.failures[0]!.error.message,
      'HTTP 400: the server says: ?key=*** ?key=*** ?key=***',
    )
    assert.ok(!run.stderr.includes('secret'), run.stderr)
  })

  test('what ends the run hides it too', async (t) => {
    for (const path of ['/v1/models', '/other']) {
      const server = await serve(
        t,
        (request, response) =>
          json(response, { error: { message: `${request.headers.authorization} is wrong` } }, 401),
        {
          gets: {
            [path]: (response, request) =>
              json(response, { error: { message: request.headers.authorization } }, 401),
          },
        },
      )
      const run = await fanout(server.url, [], { input: ONE, env: { OPENAI_API_KEY: KEY } })
      assert.equal(run.code, 2)
      assert.ok(!run.stderr.includes('secret') && run.stderr.includes('OPENAI_API_KEY'), run.stderr)
    }
  })

  test('--header: sent; refused where it is a secret or none', async (t) => {
    const server = await serve(t, answerWell)
    const args = ['--header', 'X-One: a: b', '--header', ' X-Two:c ', '--header', 'X-Empty:']
    const run = await fanout(server.url, [...MODEL, ...args], { input: ONE })
    assert.equal(run.code, 0, run.stderr)
    const { headers } = server.requests[0]!
    assert.deepEqual([headers['x-one'], headers['x-two'], headers['x-empty']], ['a: b', 'c', ''])
    const wrong = [
      'Authorization: Bearer x',
      'authorization:x',
      'no colon',
      'a b: c',
      'X: €',
      'X: a\nb',
    ]
    for (const header of wrong) {
      const refused = await fanout(server.url, [...MODEL, '--header', header], { input: ONE })
      assert.equal(refused.code, 2, `${header}: ${refused.stderr}`)
      assert.equal(errorsOf(refused).length, 1, refused.stderr)
    }
    assert.equal(server.requests.length, 1)
  })

  test('a redirect is not followed, least of all with the key', async (t) => {
    const other = await serve(t, answerWell)
    const server = await serve(t, (_request, response) => {
      response.writeHead(307, { location: `${other.url}/chat/completions` }).end()
    })
    const run = await fanout(server.url, MODEL, { input: prompts(9), env: { OPENAI_API_KEY: KEY } })
    assert.equal(run.code, 2)
    const [error, ...others] = errorsOf(run)
    assert.deepEqual(others, [])
    assert.match(error!, /HTTP 307 for \/chat\/completions: the server redirects to http.*--url/)
    assert.ok(error!.includes(`${other.url}/chat/completions`), error)
    assert.equal(run.stats.left, run.stats.records)
    assert.equal(other.requests.length, 0)
  })

  test('a redirect of /models, or after an answer, is told of with its address', async (t) => {
    const location = 'https://elsewhere/v1/models'
    const server = await serve(t, answerWell, {
      gets: { '/v1/models': (response) => void response.writeHead(308, { location }).end('moved') },
    })
    const run = await fanout(server.url, [], { input: ONE })
    assert.equal(run.code, 2)
    assert.match(errorsOf(run).join(), /HTTP 308 for \/models: .* https:\/\/elsewhere\/v1.*--url/)
    const later = await serve(t, (request, response, nth) => {
      if (nth === 0) return answerWell(request, response)
      response.writeHead(302, { location }).end()
    })
    const second = await fanout(later.url, [...MODEL, '-c', '1'], { input: prompts(2) })
    assert.equal(second.code, 1)
    assert.equal(second.failures[0]!.error.code, 'http-302')
    assert.match(second.failures[0]!.error.message, /redirects to https:\/\/elsewhere/)
  })
})

describe('unusual bodies', { concurrency: true }, () => {
  const encodings: [string, string, (text: string) => Buffer][] = [
    ['gzip', 'gzip', gzipSync],
    ['deflate', 'deflate', deflateSync],
    ['deflate without the header of zlib', 'deflate', deflateRawSync],
    ['br', 'br', brotliCompressSync],
  ]
  for (const [name, encoding, compress] of encodings) {
    test(`answers encoded as ${name}, whole and streamed`, async (t) => {
      const server = await serve(t, (request, response) => {
        const { stream } = JSON.parse(request.body) as { stream?: boolean }
        const type = stream ? 'text/event-stream' : 'application/json'
        response.writeHead(200, { 'content-type': type, 'content-encoding': encoding })
        response.end(compress(stream ? streamed('zipped') : JSON.stringify(chat('zipped'))))
      })
      for (const args of [MODEL, [...MODEL, '--no-stream']]) {
        const run = await fanout(server.url, [...args, '--retries', '0'], { input: ONE })
        assert.equal(run.records[0]?.conversations[1]?.content, 'zipped', run.stderr)
      }
    })
  }

  test('an answer of 10 MB, whole and streamed', async (t) => {
    const long = 'é"\\\n'.repeat(2_000_000)
    const server = await serve(t, (request, response) => {
      const { stream } = JSON.parse(request.body) as { stream?: boolean }
      if (!stream) return json(response, chat(long))
      const part = events(delta({ content: long.slice(0, 80_000) }))
      beginStream(response)
      for (let i = 0; i < 100; i++) response.write(part)
      response.end(events(delta({}, 'stop'), DONE))
    })
    for (const args of [MODEL, [...MODEL, '--no-stream']]) {
      const run = await fanout(server.url, args, { input: ONE })
      assert.ok(run.records[0]!.conversations[1]!.content === long, run.stderr)
    }
  })

  test('an answer of 100 MB', async (t) => {
    const part = 'word é '.repeat(125_000)
    const server = await serve(t, async (_request, response) => {
      const chunk = events(delta({ content: part }))
      beginStream(response)
      for (let i = 0; i < 100; i++) {
        if (!response.write(chunk)) await once(response, 'drain')
      }
      response.end(events(delta({}, 'stop'), DONE))
    })
    const run = await fanout(server.url, MODEL, { input: ONE })
    const { content } = run.records[0]!.conversations[1]!
    assert.equal(Buffer.byteLength(content!), 100_000_000, run.stderr)
    assert.ok(content === part.repeat(100))
  })

  test('a prompt of 10 MB', async (t) => {
    const long = 'é"\\\n'.repeat(2_000_000)
    const server = await serve(t, answerWell)
    const input = `${JSON.stringify({ id: 1, prompt: long })}\n`
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 0, run.stderr)
    assert.ok(lastMessage(server.requests[0]!) === long)
    assert.equal(run.records[0]!.conversations[0]!.content, long)
  })

  test('headers one byte at a time', async (t) => {
    const body = JSON.stringify(chat('slow'))
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    const url = await serveTcp(t, (socket) => {
      socket.once('data', async () => {
        for (const byte of Buffer.from(head + body)) {
          socket.write(Buffer.from([byte]))
          await new Promise((resolve) => setImmediate(resolve))
        }
      })
    })
    const run = await fanout(url, [...MODEL, '--no-stream'], { input: ONE })
    assert.equal(run.records[0]!.conversations[1]!.content, 'slow', run.stderr)
  })

  test('a server that answers before it has read the request', async (t) => {
    const server = await serveTcp(t, (socket, nth) => {
      if (nth === 0) return void socket.end('HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n')
      const body = JSON.stringify(chat('x'))
      socket.on('data', (data: Buffer) => {
        if (data.includes('GET ')) return socket.write(NOTHING)
        if (!data.toString().endsWith('}')) return
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      })
    })
    const run = await fanout(server, [...MODEL, '--no-stream'], { input: ONE, random: () => 0 })
    assert.equal(run.code, 0, run.stderr)
  })

  test('a connection that the server closes when a second request comes is used no more', async (t) => {
    const body = JSON.stringify(chat('x'))
    const url = await serveTcp(t, (socket) => {
      let count = 0
      socket.on('data', (data: Buffer) => {
        if (data.includes('GET ')) return socket.write(NOTHING)
        if (!data.toString().endsWith('}')) return
        if (count++ > 0) return void socket.destroy()
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      })
    })
    const args = [...MODEL, '--no-stream', '-c', '1']
    const run = await fanout(url, args, { input: prompts(6), random: () => 0 })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.stats.answered, 6)
  })
})

describe('several servers', { concurrency: true }, () => {
  test('share the work, and a dead one loses nothing', async (t) => {
    const slow = (request: Seen, response: Parameters<typeof answerWell>[1]): void =>
      void setTimeout(() => answerWell(request, response), 10)
    const [a, b] = [await serve(t, slow), await serve(t, slow)]
    const run = await fanout(a.url, [...MODEL, '--url', b.url, '-c', '4'], { input: prompts(40) })
    assert.equal(run.code, 0, run.stderr)
    assert.ok(a.requests.length >= 10 && b.requests.length >= 10)
    assert.ok(a.peak + b.peak <= 4)

    const c = await serve(t, (request, response, nth) => {
      if (nth < 5) return slow(request, response)
      void c.down()
    })
    const both = await fanout(c.url, [...MODEL, '--url', b.url, '-c', '4'], { input: prompts(40) })
    assert.equal(both.code, 0, both.stderr)
    assert.equal(both.stats.answered, 40)
  })
})
