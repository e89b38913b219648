import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type Answered, errorsOf, fanout, prompts } from '../support/fanout.ts'
import { newFolder } from '../support/run.ts'
import {
  answerWell,
  beginStream,
  DONE,
  delta,
  events,
  json,
  lastMessage,
  type Seen,
  serve,
} from '../support/servers.ts'

const MODEL = ['--model', 'm']
const ONE = '{"id":1,"prompt":"p"}\n'
const KEY = 'sk-very-secret-1234567890'

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
