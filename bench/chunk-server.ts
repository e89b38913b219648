/**
 * A server of streams: chunk-server.ts STREAMS CHUNKS TOGETHER RATE. It waits until so many streams
 * are open, then sends each of them so many chunks, so many together in one write, in turn over all
 * streams. RATE is chunks a second over all streams, 0 as fast as they are taken.
 */
import type { AddressInfo, Socket } from 'node:net'
import { tellParent } from './support/messages.ts'
import { MODELS, rawHttpServer } from './support/raw-http.ts'

const [streams = 1, chunks = 1, together = 1, rate = 0] = process.argv.slice(2).map(Number)
/** Milliseconds between two turns of a paced run. */
const TURN = 5

const HEAD = Buffer.from(
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n',
)
const ROLE = frame(event({ delta: { role: 'assistant', content: '' } }))
const TOKEN = frame(event({ delta: { content: ' token' } }))
const TOKENS = Buffer.concat(Array.from({ length: together }, () => TOKEN))
const END = Buffer.concat([
  frame(event({ delta: {}, finish_reason: 'stop' })),
  frame('data: [DONE]\n\n'),
  Buffer.from('0\r\n\r\n'),
])

interface Stream {
  socket: Socket
  left: number
}

let open: Stream[] = []

function event(choice: Record<string, unknown>): string {
  const choices = [{ index: 0, finish_reason: null, logprobs: null, ...choice }]
  const body = {
    id: 'chatcmpl-0',
    object: 'chat.completion.chunk',
    created: 1,
    model: 'm',
    choices,
  }
  return `data: ${JSON.stringify(body)}\n\n`
}

/** One piece of a chunked body. */
function frame(text: string): Buffer {
  return Buffer.from(`${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`)
}

/** Sends one write on each of the streams from `from` to `to`, those that take it. */
function turn(from: number, to: number): void {
  let ended = false
  for (let index = from; index < to; index++) {
    const stream = open[index]!
    if (stream.socket.writableNeedDrain) continue
    stream.left -= together
    stream.socket.write(TOKENS)
    if (stream.left > 0) continue
    stream.socket.write(END)
    ended = true
  }
  if (ended) open = open.filter(({ left }) => left > 0)
}

function flood(): void {
  turn(0, open.length)
  if (open.length > 0) setImmediate(flood)
}

/** Spreads the writes over time as a busy server does: a few streams every few milliseconds. */
function paced(): void {
  const began = performance.now()
  let sent = 0
  let at = 0
  const timer = setInterval(() => {
    const due = ((performance.now() - began) / 1000) * rate
    while (sent < due && open.length > 0) {
      if (at >= open.length) at = 0
      const to = Math.min(open.length, at + Math.ceil((due - sent) / together))
      sent += (to - at) * together
      const before = open.length
      turn(at, to)
      at = to - (before - open.length)
    }
    if (open.length === 0) clearInterval(timer)
  }, TURN)
}

const server = rawHttpServer((path, socket) => {
  if (!path.endsWith('/completions')) return socket.write(MODELS)
  socket.write(HEAD)
  socket.write(ROLE)
  open.push({ socket, left: chunks })
  if (open.length < streams) return undefined
  tellParent({ kind: 'started', at: Date.now() })
  return rate > 0 ? paced() : flood()
})

server.listen({ port: 0, host: '127.0.0.1', backlog: 4096 }, () => {
  tellParent({ kind: 'listening', port: (server.address() as AddressInfo).port })
})
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
