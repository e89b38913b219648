import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { expectedAnswer } from '../../src/simulator/answer.ts'
import { FaultDraw, FaultSpecError, parseFault, parseFaults } from '../../src/simulator/faults.ts'
import type { SimulatorOptions } from '../../src/simulator/options.ts'
import {
  assertBalanced,
  chatBody,
  eventsOf,
  joinStream,
  post,
  QUICK,
  RawPost,
  readWhole,
  STREAM,
  until,
  withServer,
} from './client.ts'

describe('fault specifications', () => {
  it('are a name or a status, and a rate', () => {
    assert.deepEqual(parseFault('503:2%'), { name: 503, rate: 0.02 })
    assert.deepEqual(parseFault('hang:0.5'), { name: 'hang', rate: 0.5 })
    assert.deepEqual(parseFault('html-502:100%'), { name: 'html-502', rate: 1 })
    assert.deepEqual(parseFault('cut:.25'), { name: 'cut', rate: 0.25 })
  })

  for (const [spec, problem] of [
    ['503', /expected NAME:RATE/],
    ['oops:2%', /unknown name 'oops'/],
    ['toString:2%', /unknown name/],
    ['200:2%', /unknown name '200'/],
    ['503:x', /'x' is no rate/],
    ['503:', /is no rate/],
    ['503:-1%', /is no rate/],
    ['503:2', /more than all requests/],
    ['503:101%', /more than all requests/],
  ] as const) {
    it(`refuses ${spec}`, () => {
      assert.throws(() => parseFault(spec), FaultSpecError)
      assert.throws(() => parseFault(spec), problem)
    })
  }

  it('must not hit more than every request together', () => {
    assert.throws(() => parseFaults(['503:60%', 'hang:50%']), /add up to more than 100%/)
    assert.equal(parseFaults(['503:90%', 'hang:10%']).length, 2)
  })
})

describe('fault draws', () => {
  const faults = parseFaults(['503:20%', 'reset:10%'])
  const prompts = Array.from({ length: 20_000 }, (_, i) => `prompt ${i}`)

  it('hit as many as asked for', () => {
    const draw = new FaultDraw(faults, 1)
    const names = prompts.map((prompt) => draw.next(prompt)?.name)
    const share = (name: unknown): number => names.filter((n) => n === name).length / names.length
    assert.ok(Math.abs(share(503) - 0.2) < 0.01)
    assert.ok(Math.abs(share('reset') - 0.1) < 0.01)
  })

  it('do not depend on the order of arrival', () => {
    const forwards = new FaultDraw(faults, 1)
    const backwards = new FaultDraw(faults, 1)
    const a = prompts.map((prompt) => forwards.next(prompt))
    const b = prompts.toReversed().map((prompt) => backwards.next(prompt))
    assert.deepEqual(a, b.toReversed())
  })

  it('differ between attempts and between seeds', () => {
    const first = new FaultDraw(faults, 1)
    const other = new FaultDraw(faults, 2)
    const hits = (draw: FaultDraw): boolean[] => prompts.map((p) => draw.next(p) !== undefined)
    const [a, again, b] = [hits(first), hits(first), hits(other)]
    for (const c of [again, b]) {
      const both = a.filter((hit, i) => hit && c[i]).length / prompts.length
      assert.ok(Math.abs(both - 0.3 * 0.3) < 0.01)
    }
  })
})

const CHAT = '/chat/completions'
const PROMPT = 'What is the capital of France?'

function always(fault: string, more: SimulatorOptions = {}): SimulatorOptions {
  return { ...QUICK, lengthSigma: 0, faults: [`${fault}:100%`], ...more }
}

/** An answer of 40 tokens, half of which come before a fault in the middle. */
const WHOLE = expectedAnswer(chatBody(PROMPT), always('hang'))
const HALF = expectedAnswer(chatBody(PROMPT, { max_tokens: 20 }), always('hang'))

describe('faults on the wire', () => {
  for (const status of [401, 403, 404, 408, 429, 500, 502, 503, 504]) {
    it(`${status}: the status and an error body`, () =>
      withServer(always(String(status)), async (server) => {
        const response = await post(server, CHAT, chatBody(PROMPT, STREAM))
        assert.equal(response.status, status)
        assert.equal(response.headers.get('retry-after'), status === 429 ? '1' : null)
        const { error } = (await response.json()) as { error: { code: number } }
        assert.equal(error.code, status)
        const { faults, requests, tokens } = server.stats()
        assert.deepEqual(faults, { [status]: 1 })
        assert.deepEqual([requests.faulted, tokens.generated], [1, 0])
      }))
  }

  for (const more of [STREAM, {}]) {
    const how = 'stream' in more ? 'streamed' : 'not streamed'
    const body = chatBody(PROMPT, more)

    it(`hang, ${how}: not one byte`, () =>
      withServer(always('hang'), async (server) => {
        const hung = new RawPost(server, body)
        await until(() => server.stats().faults.hang === 1)
        await (await fetch(`${server.url}/health`)).text()
        assert.equal(hung.received, '')
        await hung.leave()
        await until(() => server.stats().requests.faulted === 1)
      }))

    it(`reset, ${how}: half the answer, then RST`, () =>
      withServer(always('reset'), async (server) => {
        const post = new RawPost(server, body)
        assert.equal(await post.ended, 'ECONNRESET')
        await until(() => server.stats().requests.faulted === 1)
        const { tokens } = server.stats()
        assert.deepEqual([tokens.generated, tokens.wasted], [20, 20])
      }))

    it(`cut, ${how}: half the answer, then FIN`, () =>
      withServer(always('cut'), async (server) => {
        const post = new RawPost(server, body)
        assert.equal(await post.ended, 'end')
        if (more === STREAM) {
          assert.doesNotMatch(post.body, /finish_reason":"|\[DONE\]\n\n\r\n/)
          assert.doesNotMatch(post.received, /\r\n0\r\n\r\n$/)
        } else {
          const length = Number(/content-length: (\d+)/i.exec(post.head)![1])
          assert.equal(post.body.length, length >> 1)
        }
        await until(() => server.stats().requests.faulted === 1)
        assert.equal(server.stats().tokens.wasted, 20)
      }))

    it(`garbage, ${how}: 200 and bytes that mean nothing`, () =>
      withServer(always('garbage'), async (server) => {
        const response = await post(server, CHAT, body)
        assert.equal(response.status, 200)
        const bytes = Buffer.from(await response.arrayBuffer())
        assert.throws(() => JSON.parse(bytes.toString()))
        assert.ok(!bytes.includes('data:'))
      }))

    it(`html, ${how}: a page`, async () => {
      for (const [name, status] of [
        ['html', 200],
        ['html-502', 502],
      ] as const) {
        await withServer(always(name), async (server) => {
          const response = await post(server, CHAT, body)
          assert.equal(response.status, status)
          assert.match(response.headers.get('content-type')!, /^text\/html/)
          assert.match(await response.text(), /<html>/)
        })
      }
    })
  }

  it('stall, streamed: half the answer, then nothing', () =>
    withServer(always('stall'), async (server) => {
      const post = new RawPost(server, chatBody(PROMPT, STREAM))
      await until(() => post.received.split('data: {').length === 1 + 1 + 20)
      await (await fetch(`${server.url}/health`)).text()
      assert.doesNotMatch(post.body, /finish_reason":"|\r\n0\r\n/)
      assert.equal(server.stats().tokens.in_flight, 20)
      await post.leave()
      await until(() => server.stats().requests.faulted === 1)
      assert.equal(server.stats().tokens.wasted, 20)
    }))

  it('stall, not streamed: headers and no body', () =>
    withServer(always('stall'), async (server) => {
      const post = new RawPost(server, chatBody(PROMPT))
      await until(() => post.received.includes('\r\n\r\n'))
      await (await fetch(`${server.url}/health`)).text()
      assert.match(post.head, /^HTTP\/1.1 200 /)
      assert.equal(post.body, '')
      await post.leave()
      await until(() => server.stats().requests.faulted === 1)
    }))

  it('in-band-error, streamed: an error event after a 200, then [DONE]', () =>
    withServer(always('in-band-error'), async (server) => {
      const response = await post(server, CHAT, chatBody(PROMPT, STREAM))
      assert.equal(response.status, 200)
      const events = eventsOf(await response.text())
      assert.equal(events.length, 1 + 20 + 2)
      const { error } = JSON.parse(events.at(-2)!) as { error: { code: number } }
      assert.deepEqual([error.code, events.at(-1)], [500, '[DONE]'])
      await until(() => server.stats().requests.faulted === 1)
      assert.equal(server.stats().tokens.wasted, 20)
    }))

  it('in-band-error, not streamed: an error body with status 200', () =>
    withServer(always('in-band-error'), async (server) => {
      const response = await post(server, CHAT, chatBody(PROMPT))
      assert.equal(response.status, 200)
      assert.ok('error' in ((await response.json()) as object))
    }))

  it('no-done: everything but [DONE], and it counts as delivered', () =>
    withServer(always('no-done'), async (server) => {
      const text = await (await post(server, CHAT, chatBody(PROMPT, STREAM))).text()
      assert.ok(!eventsOf(text).includes('[DONE]'))
      assert.deepEqual(joinStream(text), WHOLE)
      await until(() => server.stats().requests.completed === 1)
      assert.equal(server.stats().tokens.delivered, 40)
    }))

  it('no-finish: all the text and no finish_reason', () =>
    withServer(always('no-finish'), async (server) => {
      const streamed = await post(server, CHAT, chatBody(PROMPT, STREAM))
      assert.deepEqual(joinStream(await streamed.text()), { ...WHOLE, finish_reason: null })
      const whole = await post(server, CHAT, chatBody(PROMPT))
      assert.deepEqual(readWhole(await whole.json()), { ...WHOLE, finish_reason: null })
      await until(() => server.stats().requests.faulted === 2)
      assert.equal(server.stats().tokens.wasted, 80)
    }))

  it('empty: no text, finish_reason stop', () =>
    withServer(always('empty'), async (server) => {
      const streamed = joinStream(await (await post(server, CHAT, chatBody(PROMPT, STREAM))).text())
      const whole = readWhole(await (await post(server, CHAT, chatBody(PROMPT))).json())
      for (const { reasoning, content, finish_reason } of [streamed, whole]) {
        assert.deepEqual([reasoning, content, finish_reason], ['', '', 'stop'])
      }
    }))

  it('abort: half the answer and finish_reason abort', () =>
    withServer(always('abort'), async (server) => {
      const streamed = await post(server, CHAT, chatBody(PROMPT, STREAM))
      assert.deepEqual(joinStream(await streamed.text()), { ...HALF, finish_reason: 'abort' })
      const whole = await post(server, CHAT, chatBody(PROMPT))
      assert.deepEqual(readWhole(await whole.json()), { ...HALF, finish_reason: 'abort' })
      await until(() => server.stats().requests.faulted === 2)
    }))

  it('slow: the same answer in ten times the time', () =>
    withServer(always('slow', { speed: 100 }), async (server) => {
      for (const more of [STREAM, {}]) {
        const before = server.stats().uptime_ms
        const response = await post(server, CHAT, chatBody(PROMPT, more))
        const text = await response.text()
        const answer = more === STREAM ? joinStream(text) : readWhole(JSON.parse(text))
        assert.deepEqual(answer, WHOLE)
        // 39 tokens after the first, 33 ms each on an empty server.
        assert.ok(server.stats().uptime_ms - before >= 10 * 39 * 33)
      }
      assert.equal(server.stats().requests.completed, 2)
    }))

  it('no-choices: status 200 and an empty list', () =>
    withServer(always('no-choices'), async (server) => {
      const whole = await post(server, CHAT, chatBody(PROMPT))
      assert.deepEqual(((await whole.json()) as { choices: unknown }).choices, [])
      const streamed = joinStream(await (await post(server, CHAT, chatBody(PROMPT, STREAM))).text())
      assert.deepEqual([streamed.content, streamed.finish_reason], ['', null])
    }))

  it('hit the same prompts in whatever order they come; the books balance', async () => {
    const options = {
      ...QUICK,
      faultSeed: 3,
      faults: ['503:15%', 'garbage:10%', 'in-band-error:10%', 'cut:10%', 'empty:5%'],
    }
    const prompts = Array.from({ length: 200 }, (_, i) => `q${i}`)
    const run = async (order: readonly string[]): Promise<Record<string, number>> => {
      let faults = {}
      await withServer(options, async (server) => {
        const ask = async (prompt: string): Promise<void> => {
          const response = await post(server, CHAT, chatBody(prompt, STREAM)).catch(() => undefined)
          await response?.text().catch(() => undefined)
          assertBalanced(server.stats())
        }
        await Promise.all(order.map(ask))
        await until(() => server.stats().requests.open === 0)
        assertBalanced(server.stats())
        faults = server.stats().faults
      })
      return faults
    }
    const forwards = await run(prompts)
    assert.deepEqual(await run(prompts.toReversed()), forwards)
    assert.equal(Object.keys(forwards).length, 5)
  })
})
