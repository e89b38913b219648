import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fanout, prompts } from '../support/fanout.ts'
import { run } from '../support/run.ts'
import {
  answerWell,
  beginStream,
  DONE,
  delta,
  events,
  json,
  lastMessage,
  serve,
  streamed,
} from '../support/servers.ts'
import { settleable } from '../support/settleable.ts'

const MODEL = ['--model', 'm']
const NO_RETRY = [...MODEL, '--retries', '0']
const ONE = '{"id":1,"prompt":"p"}\n'

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
