import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { OutageSpecError, parseOutage, parseOutages } from '../../src/simulator/outages.ts'
import type { Simulator } from '../../src/simulator/server.ts'
import {
  assertBalanced,
  chatBody,
  post,
  QUICK,
  RawPost,
  STREAM,
  until,
  withServer,
} from './client.ts'

describe('outage specifications', () => {
  it('are a duration and a start', () => {
    assert.deepEqual(parseOutage('30s+10s'), { kind: 'down', startMs: 10_000, durationMs: 30_000 })
    assert.deepEqual(parseOutage('2m+0'), { kind: 'down', startMs: 0, durationMs: 120_000 })
    assert.deepEqual(parseOutage('503:1500ms+1h'), {
      kind: 'sick',
      startMs: 3_600_000,
      durationMs: 1_500,
    })
  })

  for (const spec of [
    '',
    '30s',
    '30s+',
    '+10s',
    '0s+10s',
    '30x+10s',
    '-1s+10s',
    '404:30s+10s',
    '1s+2s+3s',
  ]) {
    it(`refuses '${spec}'`, () => assert.throws(() => parseOutage(spec), OutageSpecError))
  }

  it('come in the order of time and do not overlap', () => {
    const starts = parseOutages(['1s+20s', '1s+5s']).map((outage) => outage.startMs)
    assert.deepEqual(starts, [5_000, 20_000])
    assert.throws(() => parseOutages(['10s+0s', '10s+5s']), /overlaps/)
  })
})

async function health({ url }: Simulator): Promise<string> {
  try {
    return String((await fetch(`${url}/health`)).status)
  } catch (error) {
    const { code } = (error as { cause: { code: string } }).cause
    return code
  }
}

/** An RST that meets data which is not read yet looks like an end of stream to libuv. */
const BROKEN = /^(ECONNRESET|end)$/

const ENDLESS = { ignore_eos: true, max_tokens: 400, ...STREAM }

describe('outages', () => {
  it('down: connections are reset and refused, then the same port answers again', () =>
    withServer({ ...QUICK, speed: 10, outages: ['3s+5s'] }, async (server) => {
      const client = new RawPost(server, chatBody('long', ENDLESS))
      assert.match(await client.ended, BROKEN)
      assert.equal(await health(server), 'ECONNREFUSED')
      await until(async () => (await health(server)) === '200')
      const stats = server.stats()
      assert.deepEqual([stats.requests.lost, stats.outages, stats.scheduler.running], [1, 1, 0])
      assert.ok(stats.tokens.wasted > 0)
      assertBalanced(stats)
      const response = await post(server, '/chat/completions', chatBody('again'))
      assert.equal(response.status, 200)
      await response.text()
    }))

  it('down from the start', () =>
    withServer({ ...QUICK, outages: ['60s+0s'] }, async (server) => {
      assert.equal(await health(server), 'ECONNREFUSED')
      await until(async () => (await health(server)) === '200')
    }))

  it('sick: 503 from /health and to requests, while connections live', () =>
    withServer({ ...QUICK, speed: 10, outages: ['503:5s+1s'] }, async (server) => {
      await until(async () => (await health(server)) === '503')
      const response = await post(server, '/chat/completions', chatBody('hi'))
      assert.equal(response.status, 503)
      assert.match(await response.text(), /EngineCore/)
      await until(async () => (await health(server)) === '200')
      assert.equal(server.stats().requests.lost, 1)
    }))

  it('close ends everything that is open', async () => {
    let client: RawPost | undefined
    await withServer({ ...QUICK, speed: 1, outages: ['10s+1h'] }, async (server) => {
      client = new RawPost(server, chatBody('long', ENDLESS))
      await until(() => client!.received.includes('data: '))
    })
    assert.match(await client!.ended, BROKEN)
  })
})
