import { createServer, type Server, type Socket } from 'node:net'

/** Answers one request, its body already read. */
export type Answer = (path: string, socket: Socket) => void

const HEAD_END = Buffer.from('\r\n\r\n')
const NOTHING = Buffer.alloc(0)

/**
 * HTTP/1.1 over bare sockets, as much of it as clients of benchmarks send: requests with a
 * content-length or none, connections kept open. node:http costs several times as much per request,
 * and the server must not be what is measured.
 */
export function rawHttpServer(answer: Answer): Server {
  return createServer({ noDelay: true }, (socket) => {
    let pending: Buffer = NOTHING
    socket.on('error', () => socket.destroy())
    socket.on('data', (chunk: Buffer) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk])
      for (;;) {
        const headEnd = pending.indexOf(HEAD_END)
        if (headEnd < 0) return
        const head = pending.toString('latin1', 0, headEnd)
        const length = /\r\ncontent-length: *(\d+)/i.exec(head)
        const end = headEnd + HEAD_END.length + Number(length?.[1] ?? 0)
        if (pending.length < end) return
        pending = pending.length === end ? NOTHING : pending.subarray(end)
        answer(head.slice(head.indexOf(' ') + 1, head.indexOf(' HTTP/')), socket)
      }
    })
  })
}

/** A whole response. */
export function response(body: string): Buffer {
  const head = [
    'HTTP/1.1 200 OK',
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: keep-alive',
  ]
  return Buffer.from(`${head.join('\r\n')}\r\n\r\n${body}`)
}

export const MODELS = response('{"object":"list","data":[{"id":"m","object":"model"}]}')
