import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { expectedAnswer } from '../../src/simulator/answer.ts'
import type { Simulator } from '../../src/simulator/server.ts'
import {
  assertBalanced,
  chatBody,
  joinStream,
  post,
  QUICK,
  RawPost,
  STREAM,
  until,
  withServer,
} from './client.ts'

const ENDLESS = { ignore_eos: true, max_tokens: 20_000 }
const SLOW = { maxTokens: 20_000, peakTokensPerSecond: 1_000, maxNumSeqs: 2, speed: 1 }

async function metrics({ url }: Simulator): Promise<(name: string, label?: string) => number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return (name, label = '') => {
    const line = text.split('\n').find((l) => l.startsWith(`${name}{`) && l.includes(label))
    assert.ok(line, `no ${name}`)
    return Number(line.slice(line.lastIndexOf(' ') + 1))
  }
}

describe('accounting', () => {
  for (const more of [STREAM, {}]) {
    it(`a client that goes away: aborted at once, its tokens wasted (${Object.keys(more)})`, () =>
      withServer({ ...SLOW, speed: 20 }, async (server) => {
        const client = new RawPost(server, chatBody('long', { ...ENDLESS, ...more }))
        await until(() => server.stats().tokens.generated > 10)
        const busy = server.stats().tokens
        assert.equal(busy.in_flight, busy.generated)
        await client.leave()
        await until(() => server.stats().requests.aborted === 1)
        const { tokens, scheduler } = server.stats()
        assert.equal(scheduler.running, 0)
        assert.ok(tokens.wasted > 10 && tokens.wasted < 20_000)
        assert.equal(tokens.wasted, tokens.generated)
        assertBalanced(server.stats())
      }))
  }

  it('a client that goes away within its request', () =>
    withServer(QUICK, async (server) => {
      const client = new RawPost(server, chatBody('hi'))
      client.socket.write('POST /v1/chat/completions HTTP/1.1\r\nHost: test\r\n')
      client.socket.write('Content-Length: 100\r\n\r\n{"messages": [')
      await until(() => server.stats().requests.total === 2)
      await client.leave()
      await until(() => server.stats().requests.open === 0)
      assertBalanced(server.stats())
      assert.ok(server.stats().requests.aborted >= 1)
    }))

  it('a client that goes away while waiting costs nothing', () =>
    withServer({ ...SLOW, maxNumSeqs: 1 }, async (server) => {
      const running = new RawPost(server, chatBody('a', ENDLESS))
      await until(() => server.stats().scheduler.running === 1)
      const waiting = new RawPost(server, chatBody('b', ENDLESS))
      await until(() => server.stats().scheduler.waiting === 1)
      await waiting.leave()
      await until(() => server.stats().requests.aborted === 1)
      const { scheduler, tokens } = server.stats()
      assert.deepEqual([scheduler.running, scheduler.waiting, tokens.wasted], [1, 0, 0])
      await running.leave()
    }))

  it('metrics tell the truth while it is busy', () =>
    withServer({ ...SLOW, kvCacheTokens: 50_000 }, async (server) => {
      const clients = ['a', 'b', 'c', 'd', 'e'].map(
        (prompt) => new RawPost(server, chatBody(prompt, { ...ENDLESS, ...STREAM })),
      )
      await until(() => server.stats().scheduler.waiting === 3)
      await until(() => server.stats().tokens.generated >= 4)
      const before = server.stats()
      const value = await metrics(server)
      const after = server.stats()
      assert.equal(value('vllm:num_requests_running'), 2)
      assert.equal(value('vllm:num_requests_waiting'), 3)
      const generated = value('vllm:generation_tokens_total')
      assert.ok(before.tokens.generated <= generated && generated <= after.tokens.generated)
      const usage = value('vllm:kv_cache_usage_perc')
      assert.ok(before.scheduler.kv_cache_usage <= usage && usage <= after.scheduler.kv_cache_usage)
      assert.ok(usage > 0 && usage < 1)
      assert.equal(value('vllm:prompt_tokens_total'), 10)
      assert.equal(value('vllm:time_to_first_token_seconds_count'), 2)
      for (const client of clients) await client.leave()
      await until(() => server.stats().requests.open === 0)
      const idle = await metrics(server)
      assert.equal(idle('vllm:num_requests_running') + idle('vllm:num_requests_waiting'), 0)
      assert.equal(idle('vllm:request_success_total', '"abort"'), 5)
      assert.equal(idle('vllm:kv_cache_usage_perc'), 0)
    }))

  it('metrics count what finished, and why', () =>
    withServer({ ...QUICK, lengthSigma: 0 }, async (server) => {
      const bodies = [chatBody('a'), chatBody('b'), chatBody('c', { max_tokens: 3 })]
      await Promise.all(
        bodies.map(async (body) => (await post(server, '/chat/completions', body)).text()),
      )
      const value = await metrics(server)
      assert.equal(value('vllm:request_success_total', '"stop"'), 2)
      assert.equal(value('vllm:request_success_total', '"length"'), 1)
      assert.equal(value('vllm:generation_tokens_total'), 83)
      assert.equal(value('vllm:request_queue_time_seconds_count'), 3)
      assert.equal(value('vllm:request_queue_time_seconds_bucket', '+Inf'), 3)
    }))

  it('counts preemptions, and answers are whole all the same', () => {
    const options = { ...QUICK, speed: 50, meanTokens: 400, lengthSigma: 0, kvCacheTokens: 900 }
    return withServer(options, async (server) => {
      const bodies = Array.from({ length: 8 }, (_, i) => chatBody(`p${i}`))
      const ask = async (body: Record<string, unknown>): Promise<void> => {
        const response = await post(server, '/chat/completions', { ...body, ...STREAM })
        assert.deepEqual(joinStream(await response.text()), expectedAnswer(body, options))
      }
      await Promise.all(bodies.map(ask))
      const { scheduler, tokens } = server.stats()
      assert.ok(scheduler.preemptions > 0)
      assert.equal((await metrics(server))('vllm:num_preemptions_total'), scheduler.preemptions)
      assert.equal(tokens.delivered, 3_200)
    })
  })

  it('peaks are what was open, running and connected at once', () =>
    withServer({ ...SLOW, maxNumSeqs: 4 }, async (server) => {
      const bodies = Array.from({ length: 20 }, (_, i) => chatBody(`p${i}`, ENDLESS))
      const clients = bodies.map((body) => new RawPost(server, body))
      await until(() => server.stats().requests.open === 20)
      await until(() => server.stats().scheduler.running === 4)
      for (const client of clients) await client.leave()
      await until(() => server.stats().connections.open === 0)
      const { requests, scheduler, connections } = server.stats()
      assert.deepEqual([requests.peak, scheduler.peak_running, connections.peak], [20, 4, 20])
      assert.deepEqual([requests.open, scheduler.running], [0, 0])
    }))

  it('a client that does not read is not buffered for, and loses nothing', () => {
    const size = { meanTokens: 100_000, lengthSigma: 0, maxTokens: 100_000, maxModelLen: 200_000 }
    return withServer({ ...size, peakTokensPerSecond: 1_000_000, halfBatch: 0 }, async (server) => {
      const client = new RawPost(server, chatBody('much', STREAM))
      client.socket.pause()
      const other = process.memoryUsage().arrayBuffers
      await until(() => server.stats().tokens.generated === 100_000)
      // 20 MB of events are due. The kernel takes some MB of them, this process holds a fraction.
      assert.ok(process.memoryUsage().arrayBuffers - other < 8_000_000)
      assert.equal(server.stats().tokens.in_flight, 100_000)
      client.socket.resume()
      await until(() => client.received.endsWith('\r\n0\r\n\r\n'))
      assert.equal(client.received.split('data: {"id"').length - 1, 1 + 100_000 + 1 + 1)
      await until(() => server.stats().tokens.delivered === 100_000)
      await client.leave()
    })
  })

  it('balances at every moment, whatever happens', () =>
    withServer(
      {
        ...QUICK,
        maxNumSeqs: 8,
        kvCacheTokens: 2_000,
        faults: ['reset:5%', 'cut:5%', 'stall:5%', 'hang:5%', '503:5%', 'abort:5%', 'slow:5%'],
      },
      async (server) => {
        const clients = Array.from({ length: 150 }, (_, i) => {
          const client = new RawPost(server, chatBody(`q${i}`, i % 3 === 0 ? {} : STREAM))
          client.socket.on('error', () => undefined)
          if (i % 5 === 0) client.socket.once('data', () => client.socket.destroy())
          return client
        })
        await until(() => {
          const stats = server.stats()
          assertBalanced(stats)
          const { requests, faults } = stats
          return requests.total === 150 && requests.open <= (faults.stall ?? 0) + (faults.hang ?? 0)
        })
        for (const { socket } of clients) socket.destroy()
        await until(() => server.stats().requests.open === 0)
        assertBalanced(server.stats())
        assert.equal(server.stats().tokens.in_flight, 0)
        assert.ok(server.stats().requests.aborted > 0)
      },
    ))
})
