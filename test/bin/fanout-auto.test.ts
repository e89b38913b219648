import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startSimulator } from '../../src/simulator/server.ts'
import { run } from '../support/run.ts'
import { type ApiServer, answerWell, json, type Seen, serve } from '../support/servers.ts'

test('--concurrency auto fills a server of 16 slots and not its queue', async () => {
  const server = await startSimulator({
    speed: 40,
    maxNumSeqs: 16,
    meanTokens: 100,
    lengthSigma: 0.5,
    keepAliveMs: 0,
  })
  const lines = Array.from({ length: 400 }, (_, id) => JSON.stringify({ id, prompt: `q${id}` }))
  try {
    const args = ['-c', 'auto', '--max-concurrency', '256', '--clock-speed', '40']
    const result = await run('fanout-complete', args, {
      input: `${lines.join('\n')}\n`,
      env: { OPENAI_BASE_URL: `${server.url}/v1` },
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.stdout.toString().trimEnd().split('\n').length, 400)
    const { requests, scheduler } = server.stats()
    assert.equal(scheduler.peak_running, 16, 'the server was filled')
    assert.ok(requests.peak <= 64, `${requests.peak} requests were open at 16 slots`)
    assert.match(result.stderr, /, limit \d+: /)
  } finally {
    await server.close()
  }
})

test('answers that come whole do not look like a queue', async () => {
  const server = await startSimulator({
    profile: 'story',
    speed: 400,
    keepAliveMs: 0,
  })
  const lines = Array.from({ length: 60 }, (_, id) => {
    const body = { model: 'simulated', messages: [{ role: 'user', content: `q${id}` }] }
    return JSON.stringify({ custom_id: `${id}`, method: 'POST', url: '/v1/chat/completions', body })
  })
  try {
    const args = ['-c', 'auto', '--clock-speed', '400', '--url', `${server.url}/v1`]
    const result = await run('fanout-complete', args, { input: `${lines.join('\n')}\n` })
    assert.equal(result.code, 0, result.stderr)
    const { peak_running } = server.stats().scheduler
    assert.ok(peak_running >= 30, `at most ${peak_running} ran at once`)
  } finally {
    await server.close()
  }
})

test('preempted requests that wait are ours, and the metrics stay believed', async () => {
  const server = await startSimulator({
    profile: 'rtx4090-7b',
    speed: 80,
    keepAliveMs: 0,
  })
  const lines = Array.from({ length: 120 }, (_, id) => JSON.stringify({ id, prompt: `q${id}` }))
  try {
    const fanout = (concurrency: string) => {
      const args = ['-c', concurrency, '--clock-speed', '80', '--url', `${server.url}/v1`]
      return run('fanout-complete', args, { input: `${lines.join('\n')}\n` })
    }
    // Another client fills the cache, which auto would not.
    const [result] = await Promise.all([fanout('auto'), fanout('60')])
    assert.equal(result.code, 0, result.stderr)
    const { preemptions } = server.stats().scheduler
    assert.ok(preemptions > 20, `${preemptions} requests were preempted`)
    // They may come late where the machine is busy.
    assert.doesNotMatch(result.stderr, /among which ours are not/)
  } finally {
    await server.close()
  }
})

test('a 429 with Retry-After keeps the other requests back too', async (t) => {
  const times: number[] = []
  const server = await serve(t, (request, response, nth) => {
    times.push(performance.now())
    if (nth > 0) return answerWell(request, response)
    response.setHeader('retry-after', '20')
    json(response, {}, 429)
  })
  const args = ['-c', 'auto', '--max-concurrency', '1', '--clock-speed', '20', '--url', server.url]
  const input = [1, 2, 3].map((id) => `{"id":${id},"prompt":"p${id}"}\n`).join('')
  const result = await run('fanout-complete', args, { input })
  assert.equal(result.code, 0, result.stderr)
  assert.equal(times.length, 4)
  // Of the server's time, and never less: the next request, whichever it is, is a second late.
  assert.ok(times[1]! - times[0]! >= 950, `it came after ${times[1]! - times[0]!} ms`)
})

describe('/metrics of no use are told once, and the run goes on by first tokens', () => {
  interface Useless {
    reply: (response: ServerResponse) => void
    why: string
    /** How often it is asked before that is known. */
    asked?: number
  }
  const html = '<html><body>vllm:num_requests_waiting 3</body></html>'
  const others = ['num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc']
    .map((name) => `vllm:${name}{model_name="other"} 0.95\n`)
    .join('')
  const lies = 'vllm:num_requests_running -1\nvllm:num_requests_waiting NaN\n'
  const useless: Record<string, Useless> = {
    '404': {
      reply: (response: ServerResponse) => json(response, {}, 404),
      why: 'gives no metrics',
    },
    HTML: {
      reply: (response: ServerResponse) => void response.end(html),
      why: 'does not tell how',
    },
    lies: {
      reply: (response: ServerResponse) => void response.end(lies),
      why: 'does not tell how',
    },
    silence: { reply: () => {}, why: 'gives no metrics' },
    'another model': {
      reply: (response: ServerResponse) => void response.end(others),
      why: "tells of the model 'other', not 'm'",
      asked: 1,
    },
    'a queue that is none': {
      reply: (response: ServerResponse) =>
        void response.end('vllm:num_requests_running 9\nvllm:num_requests_waiting 1000000\n'),
      why: 'tells of 1000000 waiting requests, among which ours are not',
      asked: 21,
    },
  }
  for (const [name, { reply, why, asked = 3 }] of Object.entries(useless)) {
    test(name, async (t) => {
      const answer = async (request: Seen, response: ServerResponse) => {
        await sleep(50)
        answerWell(request, response)
      }
      const server = await serve(t, answer, { gets: { '/metrics': reply } })
      const args = ['-c', 'auto', '--clock-speed', '10', '--url', server.url]
      const result = await run('fanout-complete', args, { input: endless(server) })
      assert.equal(result.code, 0, result.stderr)
      const warnings = result.stderr.split('\n').filter((line) => line.includes('no-metrics'))
      assert.equal(warnings.length, 1, result.stderr)
      assert.ok(warnings[0]!.includes(`GET /metrics ${why}`), warnings[0])
      assert.ok(server.peak > 4, `at most ${server.peak} requests were open`)
      const gets = server.gets.filter((path) => path === '/metrics')
      assert.ok(gets.length < asked + 5, `${gets.length} times`)
    })
  }

  /** Records until /metrics is not asked any more, though it could have been many times. */
  async function* endless(server: ApiServer): AsyncGenerator<Buffer> {
    let seconds = 0
    let asked = 0
    for (let id = 0; seconds < 20; id++) {
      yield Buffer.from(`{"id":${id},"prompt":"q"}\n`)
      if (id % 20 !== 19) continue
      await sleep(100)
      const gets = server.gets.filter((path) => path === '/metrics').length
      seconds = gets === asked ? seconds + 1 : 0
      asked = gets
    }
  }
})
