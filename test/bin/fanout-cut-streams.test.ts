import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { fanout } from '../support/fanout.ts'
import {
  answerWell,
  beginStream,
  DONE,
  delta,
  events,
  lastMessage,
  serve,
} from '../support/servers.ts'

const ONCE = ['--model', 'm', '--retries', '0']

/** Short ones, since each byte is a request. */
const chunk = (delta: object, finish?: string): object => ({
  choices: [{ delta, finish_reason: finish }],
})
/** Up to the finish_reason, and all of it. */
const ANSWER = events(
  chunk({ reasoning: 'r€' }),
  chunk({ content: 'Hé🎉' }),
  chunk({ content: ' end' }),
  chunk({}, 'stop'),
)
const STREAM = Buffer.from(ANSWER + events({ choices: [], usage: { total_tokens: 14 } }, DONE))
/** The finish_reason's event has its blank line, or at least its data. */
const FINISHED = Buffer.byteLength(ANSWER)
const SAID = FINISHED - '\n\n'.length

/** Each way in which a response can end before its time, and what that is called. */
const BROKEN = ['closed', 'reset']
const ENDS: { name: string; codes: string[]; end: (response: ServerResponse) => void }[] = [
  { name: 'a clean end', codes: ['no-finish'], end: (response) => void response.end() },
  { name: 'a chunked body aborted', codes: BROKEN, end: ({ socket }) => void socket!.end() },
  { name: 'a reset', codes: BROKEN, end: ({ socket }) => void socket!.resetAndDestroy() },
]

describe('a stream cut at any byte', { concurrency: true }, () => {
  for (const { name, codes, end } of ENDS) {
    test(`${name}: an answer from the finish_reason on, cut before it`, async (t) => {
      const server = await serve(t, (request, response) => {
        const at = Number(lastMessage(request))
        const stream = beginStream(response)
        stream.flushHeaders()
        stream.write(STREAM.subarray(0, at))
        // The client has it before the end comes.
        setTimeout(() => end(response), 30)
      })
      const input = Array.from(
        { length: STREAM.length + 1 },
        (_, at) => `{"id":${at},"prompt":"${at}"}\n`,
      ).join('')
      // At the wall's speed: a probe that a busy machine makes late would be an outage, and no failure.
      const args = [...ONCE, '-c', '64', '--clock-speed', '1']
      const { records, failures, stderr } = await fanout(server.url, args, { input })
      assert.equal(server.requests.length, STREAM.length + 1, 'each is asked once')
      const answered = records.map(({ id }) => Number(id)).sort((a, b) => a - b)
      assert.equal(answered[0], SAID, stderr)
      assert.equal(answered.length, STREAM.length + 1 - SAID)
      for (const { id, conversations, usage } of records) {
        const answer = { role: 'assistant', content: 'Hé🎉 end', reasoning_content: 'r€' }
        assert.deepEqual(conversations.at(-1), answer)
        const whole = Number(id) >= STREAM.length - DONE.length - '\n\n'.length
        assert.equal(usage?.total_tokens, whole ? 14 : undefined, `usage at byte ${id}`)
      }
      for (const { id, error } of failures) {
        assert.ok(codes.includes(error.code), `at byte ${id}: ${error.code}`)
        assert.match(error.message, /it was cut$|^The server closed|^Connection reset/)
      }
    })
  }

  test('an event without its blank line counts where its data is whole', async (t) => {
    const said = `${events(delta({ content: 'a' }))}data: ${JSON.stringify(delta({}, 'stop'))}`
    const ends = ['', '\n', '\r', '\r\n', '\nid: 7', '\n\ndata: [DONE]', '\n\ndata', '\n\ndata:\n']
    const errors = ['\n\nevent: error\ndata: worker di', '\n\nevent: error\ndata: {"message":"wor']
    const server = await serve(t, (request, response) => {
      beginStream(response).end(said + lastMessage(request))
    })
    const input = [...ends, ...errors].map((prompt) => `${JSON.stringify({ prompt })}\n`).join('')
    const run = await fanout(server.url, ONCE, { input })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.records.length, ends.length + errors.length)
  })

  test('an error whose event is not ended is still told', async (t) => {
    const errors = [
      'data: {"error":{"message":"worker died"}}',
      'event: error\ndata: worker died\n',
    ]
    const server = await serve(t, (request, response) => {
      beginStream(response).end(lastMessage(request))
    })
    const input = errors.map((prompt) => `${JSON.stringify({ prompt })}\n`).join('')
    const run = await fanout(server.url, ONCE, { input })
    for (const { error } of run.failures) {
      assert.equal(error.code, 'in-band-error')
      assert.equal(error.message, 'the server says: worker died')
    }
    assert.equal(run.failures.length, errors.length)
  })

  test('a cut stream is tried again', async (t) => {
    const server = await serve(t, (request, response, nth) => {
      if (nth === 0) beginStream(response).end(STREAM.subarray(0, 10))
      else answerWell(request, response)
    })
    const run = await fanout(server.url, ['--model', 'm'], {
      input: '{"id":1,"prompt":"p"}\n',
      random: () => 0,
    })
    assert.equal(run.code, 0, run.stderr)
    assert.deepEqual(run.stats.retries_by_code, { 'no-finish': 1 })
  })
})
