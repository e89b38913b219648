import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Interrupt } from '../../src/cli/interrupt.ts'
import { errorsOf, fanout, prompts } from '../support/fanout.ts'
import { answerWell, deadUrl, json, type Seen, serve, serveTcp } from '../support/servers.ts'

const MODEL = ['--model', 'm']
const ONE = '{"id":1,"prompt":"p"}\n'

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
