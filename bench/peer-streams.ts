/**
 * Bare undici reading streams: peer-streams.ts URL COUNT CONCURRENCY. A client per stream; events are
 * split at their blank line, each is parsed, and the text is put together.
 */
import { StringDecoder } from 'node:string_decoder'
import { Client } from 'undici'
import { CHAT_PATH, JSON_HEADERS, peerArguments, requestBody, workers } from './support/peer.ts'

interface Chunk {
  choices: { delta: { content?: string } }[]
}

const args = peerArguments(process.argv)
let length = 0
await workers(args, async (id) => {
  const client = new Client(args.origin, { headersTimeout: 0, bodyTimeout: 0 })
  const decoder = new StringDecoder('utf8')
  let pending = ''
  let content = ''
  const { body } = await client.request({
    method: 'POST',
    path: CHAT_PATH,
    headers: JSON_HEADERS,
    body: requestBody(id, true),
  })
  body.on('data', (bytes: Buffer) => {
    const events = (pending + decoder.write(bytes)).split('\n\n')
    pending = events.pop() ?? ''
    for (const event of events) {
      if (event === 'data: [DONE]') continue
      const chunk = JSON.parse(event.slice(6)) as Chunk
      content += chunk.choices[0]?.delta.content ?? ''
    }
  })
  await new Promise((resolve, reject) => {
    body.on('end', resolve)
    body.on('error', reject)
  })
  length += content.length
  await client.destroy()
})
if (length === 0) throw new Error('no text came')
