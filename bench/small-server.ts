/**
 * A server that answers every chat completion at once with the same small body. It counts requests
 * and the time from the first to the last; a message from its parent makes it tell them and begin
 * anew.
 */
import type { AddressInfo } from 'node:net'
import { tellParent } from './support/messages.ts'
import { MODELS, rawHttpServer, response } from './support/raw-http.ts'

const COMPLETION = response(
  JSON.stringify({
    id: 'chatcmpl-0',
    object: 'chat.completion',
    created: 1_795_000_000,
    model: 'm',
    choices: [
      {
        index: 0,
        message: { role: 'assistant', content: '4', reasoning: 'Add.' },
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
  }),
)

let requests = 0
let firstAt = 0
let lastAt = 0

const server = rawHttpServer((path, socket) => {
  if (!path.endsWith('/completions')) return socket.write(MODELS)
  lastAt = performance.now()
  if (requests++ === 0) firstAt = lastAt
  return socket.write(COMPLETION)
})

server.listen(0, '127.0.0.1', () => {
  tellParent({ kind: 'listening', port: (server.address() as AddressInfo).port })
})

process.on('message', () => {
  tellParent({ kind: 'report', requests, seconds: (lastAt - firstAt) / 1000 })
  requests = 0
})
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'))
