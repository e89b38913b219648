import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startClock } from '../../src/simulator/clock.ts'
import type { StatsSnapshot } from '../../src/simulator/ledger.ts'
import { chatBody, post, RawPost, STREAM, until, withServer } from './client.ts'

describe('speed', () => {
  it('scales the clock and nothing else about it', () => {
    let wall = 1_000
    const clock = startClock(50, () => wall)
    assert.equal(clock.now(), 0)
    wall += 20
    assert.equal(clock.now(), 1_000)
    assert.equal(clock.toWall(1_000), 20)
  })

  it('changes no answer and no count', async () => {
    const options = { meanTokens: 30, keepAliveMs: 0, faults: ['503:20%', 'abort:20%'] }
    const results: { texts: string[]; stats: Partial<StatsSnapshot> }[] = []
    for (const speed of [30, 300]) {
      await withServer({ ...options, speed }, async (server) => {
        const texts = await Promise.all(
          Array.from({ length: 20 }, async (_, i) => {
            const headers = { 'x-request-id': `r${i}` }
            const response = await post(
              server,
              '/chat/completions',
              chatBody(`q${i}`, STREAM),
              headers,
            )
            return (await response.text()).replaceAll(/"created":\d+/g, '')
          }),
        )
        await until(() => server.stats().requests.open === 0)
        const { requests, tokens, faults } = server.stats()
        results.push({ texts, stats: { requests: { ...requests, peak: 0 }, tokens, faults } })
      })
    }
    assert.deepEqual(results[0], results[1])
  })

  it('an answer takes as much server time as ever', async () => {
    const body = chatBody('hi', { ignore_eos: true, max_tokens: 100 })
    for (const speed of [20, 200]) {
      await withServer(
        { speed, peakTokensPerSecond: 100, halfBatch: 9, keepAliveMs: 0 },
        async (server) => {
          const before = server.stats().uptime_ms
          await (await post(server, '/chat/completions', body)).text()
          assert.ok(server.stats().uptime_ms - before >= 10_000) // 100 steps of 100 ms
        },
      )
    }
  })

  it('idle connections are closed by the same clock', () =>
    withServer({ speed: 200, meanTokens: 5 }, async (server) => {
      const client = new RawPost(server, chatBody('hi'))
      assert.equal(await client.ended, 'end') // by the server, 25 ms after the answer
      assert.match(client.body, /finish_reason/)
      assert.doesNotMatch(client.head, /^keep-alive:/im)
    }))

  it('comments keep silent streams alive, when asked for', async () => {
    const options = { speed: 10, maxNumSeqs: 1, sseKeepAliveMs: 500 }
    await withServer(options, async (server) => {
      const endless = { ignore_eos: true, max_tokens: 8_000, ...STREAM }
      const running = new RawPost(server, chatBody('a', endless))
      await until(() => server.stats().scheduler.running === 1)
      const waiting = new RawPost(server, chatBody('b', endless))
      await until(() => waiting.body.split(': keep-alive\n\n').length > 2)
      assert.doesNotMatch(waiting.body, /data:/)
      assert.doesNotMatch(running.body, /keep-alive/)
      await running.leave()
      await until(() => waiting.body.includes('data:'))
      await waiting.leave()
    })
    await withServer({ ...options, sseKeepAliveMs: 0 }, async (server) => {
      const slow = new RawPost(server, chatBody('a', { max_tokens: 20, ...STREAM }))
      await until(() => slow.body.includes('[DONE]'))
      await sleep(1)
      assert.doesNotMatch(slow.body, /keep-alive/)
    })
  })
})
