/**
 * How many tokens a second one core streams: a measurement, not a test.
 *
 *   node --import tsx test/simulator/measure-streams.ts [STREAMS] [TOKENS_PER_SECOND] [SECONDS]
 *
 * The server runs in this process, which the CPU share is of; the clients, bare sockets that count
 * bytes, in another one. Below 100 % the server keeps the pace asked for; ask for more to find its
 * limit.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startSimulator } from '../../src/simulator/server.ts'

const [streams = 2_000, rate = 200_000, seconds = 10] = process.argv.slice(2).map(Number)
const WARM_UP_MS = 1_000

if (process.env.MEASURE_PORT) read(Number(process.env.MEASURE_PORT))
else await serve()

async function serve(): Promise<void> {
  const server = await startSimulator({
    maxNumSeqs: streams,
    peakTokensPerSecond: rate,
    halfBatch: 0,
    prefillTokensPerSecond: Number.POSITIVE_INFINITY,
    maxTokens: 1_000_000_000,
    maxModelLen: 2_000_000_000,
  })
  const env = { ...process.env, MEASURE_PORT: String(server.port) }
  const reader = fork(fileURLToPath(import.meta.url), process.argv.slice(2), { env })
  const bytes = async (): Promise<number> => {
    reader.send('bytes?')
    const [count] = (await once(reader, 'message')) as [number]
    return count
  }
  const begun = performance.now()
  while (server.stats().scheduler.running < streams) await sleep(10)
  const ramp = performance.now() - begun
  await sleep(WARM_UP_MS)
  const [cpu, from, bytesFrom] = [process.cpuUsage(), performance.now(), await bytes()]
  const tokensFrom = server.stats().tokens.generated
  await sleep(1000 * seconds)
  const { user, system } = process.cpuUsage(cpu)
  const took = (performance.now() - from) / 1000
  const { tokens, scheduler } = server.stats()
  const made = (tokens.generated - tokensFrom) / took
  const megabytes = ((await bytes()) - bytesFrom) / took / 1e6
  const share = (user + system) / 1e4 / took
  console.log(
    `${scheduler.running} streams, all open after ${Math.round(ramp)} ms: ${Math.round(made)} tokens/s made, ` +
      `${megabytes.toFixed(1)} MB/s read, ${share.toFixed(0)} % of a core, ` +
      `${Math.round(process.memoryUsage().rss / 1e6)} MB`,
  )
  reader.kill()
  await server.close()
}

function read(port: number): void {
  let count = 0
  process.on('message', () => process.send!(count))
  for (let i = 0; i < streams; i++) {
    const messages = [{ role: 'user', content: `prompt ${i}` }]
    const body = JSON.stringify({ messages, stream: true, ignore_eos: true })
    const socket = connect(port, '127.0.0.1')
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: m\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    socket.on('data', (data) => {
      count += data.length
    })
    socket.on('error', () => undefined)
  }
}
