import assert from 'node:assert/strict'
import { once } from 'node:events'
import { describe, test } from 'node:test'
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from 'node:zlib'
import { fanout, prompts } from '../support/fanout.ts'
import {
  answerWell,
  beginStream,
  chat,
  DONE,
  delta,
  events,
  json,
  lastMessage,
  serve,
  serveTcp,
  streamed,
} from '../support/servers.ts'

const MODEL = ['--model', 'm']
const ONE = '{"id":1,"prompt":"p"}\n'
const NOTHING = 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'

describe('unusual bodies', { concurrency: true }, () => {
  const encodings: [string, string, (text: string) => Buffer][] = [
    ['gzip', 'gzip', gzipSync],
    ['deflate', 'deflate', deflateSync],
    ['deflate without the header of zlib', 'deflate', deflateRawSync],
    ['br', 'br', brotliCompressSync],
  ]
  for (const [name, encoding, compress] of encodings) {
    test(`answers encoded as ${name}, whole and streamed`, async (t) => {
      const server = await serve(t, (request, response) => {
        const { stream } = JSON.parse(request.body) as { stream?: boolean }
        const type = stream ? 'text/event-stream' : 'application/json'
        response.writeHead(200, { 'content-type': type, 'content-encoding': encoding })
        response.end(compress(stream ? streamed('zipped') : JSON.stringify(chat('zipped'))))
      })
      for (const args of [MODEL, [...MODEL, '--no-stream']]) {
        const run = await fanout(server.url, [...args, '--retries', '0'], { input: ONE })
        assert.equal(run.records[0]?.conversations[1]?.content, 'zipped', run.stderr)
      }
    })
  }

  test('an answer of 10 MB, whole and streamed', async (t) => {
    const long = 'é"\\\n'.repeat(2_000_000)
    const server = await serve(t, (request, response) => {
      const { stream } = JSON.parse(request.body) as { stream?: boolean }
      if (!stream) return json(response, chat(long))
      const part = events(delta({ content: long.slice(0, 80_000) }))
      beginStream(response)
      for (let i = 0; i < 100; i++) response.write(part)
      response.end(events(delta({}, 'stop'), DONE))
    })
    for (const args of [MODEL, [...MODEL, '--no-stream']]) {
      const run = await fanout(server.url, args, { input: ONE })
      assert.ok(run.records[0]!.conversations[1]!.content === long, run.stderr)
    }
  })

  test('an answer of 100 MB', async (t) => {
    const part = 'word é '.repeat(125_000)
    const server = await serve(t, async (_request, response) => {
      const chunk = events(delta({ content: part }))
      beginStream(response)
      for (let i = 0; i < 100; i++) {
        if (!response.write(chunk)) await once(response, 'drain')
      }
      response.end(events(delta({}, 'stop'), DONE))
    })
    const run = await fanout(server.url, MODEL, { input: ONE })
    const { content } = run.records[0]!.conversations[1]!
    assert.equal(Buffer.byteLength(content!), 100_000_000, run.stderr)
    assert.ok(content === part.repeat(100))
  })

  test('a prompt of 10 MB', async (t) => {
    const long = 'é"\\\n'.repeat(2_000_000)
    const server = await serve(t, answerWell)
    const input = `${JSON.stringify({ id: 1, prompt: long })}\n`
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 0, run.stderr)
    assert.ok(lastMessage(server.requests[0]!) === long)
    assert.equal(run.records[0]!.conversations[0]!.content, long)
  })

  test('headers one byte at a time', async (t) => {
    const body = JSON.stringify(chat('slow'))
    const head = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
    const url = await serveTcp(t, (socket) => {
      socket.once('data', async () => {
        for (const byte of Buffer.from(head + body)) {
          socket.write(Buffer.from([byte]))
          await new Promise((resolve) => setImmediate(resolve))
        }
      })
    })
    const run = await fanout(url, [...MODEL, '--no-stream'], { input: ONE })
    assert.equal(run.records[0]!.conversations[1]!.content, 'slow', run.stderr)
  })

  test('a server that answers before it has read the request', async (t) => {
    const server = await serveTcp(t, (socket, nth) => {
      if (nth === 0) return void socket.end('HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n')
      const body = JSON.stringify(chat('x'))
      socket.on('data', (data: Buffer) => {
        if (data.includes('GET ')) return socket.write(NOTHING)
        if (!data.toString().endsWith('}')) return
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      })
    })
    const run = await fanout(server, [...MODEL, '--no-stream'], { input: ONE, random: () => 0 })
    assert.equal(run.code, 0, run.stderr)
  })

  test('a connection that the server closes when a second request comes is used no more', async (t) => {
    const body = JSON.stringify(chat('x'))
    const url = await serveTcp(t, (socket) => {
      let count = 0
      socket.on('data', (data: Buffer) => {
        if (data.includes('GET ')) return socket.write(NOTHING)
        if (!data.toString().endsWith('}')) return
        if (count++ > 0) return void socket.destroy()
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n${body}`)
      })
    })
    const args = [...MODEL, '--no-stream', '-c', '1']
    const run = await fanout(url, args, { input: prompts(6), random: () => 0 })
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.stats.answered, 6)
  })
})
