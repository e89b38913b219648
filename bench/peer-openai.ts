/** The OpenAI Node SDK as a client: peer-openai.ts URL COUNT CONCURRENCY. */
import OpenAI from 'openai'
import { peerArguments, workers } from './support/peer.ts'

const args = peerArguments(process.argv)
const client = new OpenAI({ baseURL: `${args.origin}/v1`, apiKey: 'none', maxRetries: 0 })

let answers = 0
await workers(args, async (id) => {
  const completion = await client.chat.completions.create({
    model: 'm',
    messages: [{ role: 'user', content: `What is ${10_000 + (id % 90_000)}+2345?` }],
  })
  answers += completion.choices.length
})
if (answers !== args.count) throw new Error(`${answers} of ${args.count} answered`)
