/**
 * Bare undici as a client: peer-undici.ts client|pool URL COUNT CONCURRENCY. A client per slot, or one
 * pool for all; each answer is read and parsed.
 */
import { Client, type Dispatcher, Pool } from 'undici'
import { CHAT_PATH, JSON_HEADERS, peerArguments, requestBody, workers } from './support/peer.ts'

const pooled = process.argv[2] === 'pool'
const args = peerArguments(process.argv)
const pool = pooled ? new Pool(args.origin, { connections: args.concurrency }) : undefined
const dispatchers: Dispatcher[] = Array.from(
  { length: args.concurrency },
  () => pool ?? new Client(args.origin),
)

let answers = 0
await workers(args, async (id, worker) => {
  const { body } = await dispatchers[worker]!.request({
    method: 'POST',
    path: CHAT_PATH,
    headers: JSON_HEADERS,
    body: requestBody(id, false),
  })
  const answer = JSON.parse(await body.text()) as { choices: unknown[] }
  answers += answer.choices.length
})
if (answers !== args.count) throw new Error(`${answers} of ${args.count} answered`)
await Promise.all([...new Set(dispatchers)].map((dispatcher) => dispatcher.destroy()))
