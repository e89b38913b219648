import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { prompts } from '../support/fanout.ts'
import { type Result, run } from '../support/run.ts'
import { answerWell, beginStream, lastMessage, serve, serveTcp } from '../support/servers.ts'

/** Writes a piece for as long as the other end takes it. */
function flood(target: Socket | ServerResponse, piece: string): void {
  const pump = (): void => {
    while (!target.destroyed) if (!target.write(piece)) return
  }
  target.on('drain', pump)
  pump()
}

/** Two records, one attempt each, in little memory. */
function ask(url: string, ...more: string[]): Promise<Result> {
  const args = ['--url', url, '--model', 'm', '--retries', '0', '-c', '1', ...more]
  const env = { NODE_OPTIONS: '--max-old-space-size=200' }
  return run('fanout-complete', args, { input: prompts(2), env })
}

function assertOneFailed(result: Result, message: RegExp): void {
  assert.equal(result.code, 1, result.stderr)
  assert.match(result.stderr, message)
  assert.equal(result.stderr.match(/^ERROR sample 1: /gm)?.length, 1, result.stderr)
  assert.equal((JSON.parse(result.stdout.toString()) as { id: number }).id, 2)
}

const SEVEN_BIT = 'x'.repeat(64 * 1024)
const BILLION = '[],'.repeat(20_000)

describe('a hostile server ends in a failed record, and the rest goes on', {
  concurrency: 2,
  timeout: 120_000,
}, () => {
  for (const [name, attack] of [
    ['an endless line of a stream', SEVEN_BIT],
    ['endless comments of a stream', `: ${SEVEN_BIT}\n`],
    ['endless empty events', 'data: {"choices":[]}\n\n'.repeat(2000)],
    ['an array of a billion elements in a stream', BILLION],
  ] as const) {
    test(name, async (t) => {
      const server = await serve(t, (request, response) => {
        if (lastMessage(request) !== 'p1') return answerWell(request, response)
        beginStream(response).write('data: {"choices":[')
        flood(response, attack)
      })
      assertOneFailed(await ask(server.url, '--max-answer', '8M'), /larger than 8388608 bytes/)
    })
  }

  test('an array of a billion elements in a body', async (t) => {
    const server = await serve(t, (request, response) => {
      if (lastMessage(request) !== 'p1') return answerWell(request, response)
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"choices":[')
      flood(response, BILLION)
    })
    const result = await ask(server.url, '--no-stream', '--max-answer', '8M')
    assertOneFailed(result, /larger than 8388608 bytes/)
  })

  test('endless headers', async (t) => {
    let attacked = 0
    const url = await serveTcp(t, (socket) => {
      socket.once('data', (chunk) => {
        if (chunk.includes('GET ')) return socket.end('HTTP/1.1 200 OK\r\n\r\n')
        if (attacked++ > 0) {
          const body =
            '{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}],"usage":null}'
          return socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
        }
        socket.write('HTTP/1.1 200 OK\r\n')
        flood(socket, `x-endless: ${'y'.repeat(1000)}\r\n`)
      })
    })
    assertOneFailed(await ask(url), /^ERROR sample 1: Connection failed: .*[Hh]eaders/m)
  })

  test('control bytes of a server are not printed raw, nor is the key that it echoes', async (t) => {
    const key = 'sk-secret-0123456789'
    const server = await serve(t, (request, response) => {
      if (lastMessage(request) !== 'p1') return answerWell(request, response)
      const said = `\u001b]0;owned\u0007 ${request.headers.authorization} \u009b31m`
      response.writeHead(400, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ error: { message: said } }))
    })
    const args = ['--url', server.url, '--model', 'm', '--retries', '0', '-c', '1', '--stats', '-']
    const env = { OPENAI_API_KEY: key }
    const result = await run('fanout-complete', args, { input: prompts(2), env })
    assertOneFailed(result, /HTTP 400: .*owned/)
    for (const byte of ['\u001b', '\u0007', '\u009b', key]) {
      assert.ok(!result.stderr.includes(byte), JSON.stringify(byte))
    }
  })
})
