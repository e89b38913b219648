/**
 * The least a client can do: peer-raw.ts URL COUNT CONCURRENCY. The same bytes over bare sockets, the
 * answer's length read off the first one; shows what the server can do at most.
 */
import { connect } from 'node:net'
import { CHAT_PATH, peerArguments, requestBody } from './support/peer.ts'

const args = peerArguments(process.argv)
const { hostname, port } = new URL(args.origin)
const body = requestBody(0, false)
const request = Buffer.from(
  `POST ${CHAT_PATH} HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\n` +
    `content-length: ${body.length}\r\n\r\n${body}`,
)

let sent = 0
for (let index = 0; index < args.concurrency; index++) {
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  const send = (): void => {
    if (sent++ < args.count) socket.write(request)
    else socket.destroy()
  }
  socket.on('connect', send)
  // An answer is so small that it always comes as one piece.
  socket.on('data', send)
}
