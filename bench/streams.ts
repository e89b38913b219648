import type { Benchmark } from './support/benchmark.ts'
import { megabytes } from './support/figures.ts'
import type { ProcessWatch } from './support/process-watch.ts'
import { canWatch } from './support/process-watch.ts'
import { SHORT_RECORD } from './support/records.ts'
import { type Reporter, significant } from './support/reporter.ts'
import { ServerProcess } from './support/server-process.ts'
import { helper, type Workshop } from './support/workshop.ts'

const STREAMS = 2000
const ROUNDS = 3
const MOST_MEMORY = 600e6
/**
 * Chunks a second of the paced run: so few that the client keeps up and meets each packet alone. Sent
 * as fast as can be, packets wait in the kernel and are read several at a time.
 */
const PACE = 50_000

/** How the server sends. */
interface Way {
  what: string
  /** Chunks of each stream. */
  chunks: number
  together: number
  rate: number
  /** Chunks a second, or where the run is paced a second of CPU time. */
  atLeast: number
}

interface Measured {
  perSecond: number
  perCpuSecond: number
  memory: number
}

export const streams: Benchmark = {
  name: 'streams',
  summary: `fanout-complete, ${STREAMS} streams at a time, best of several rounds in turn`,
  async run(reporter, workshop) {
    if (!canWatch) return reporter.skip('streams', 'CPU time and memory are read from /proc')
    const ways: Way[] = [
      { what: 'each chunk alone, paced', chunks: 200, together: 1, rate: PACE, atLeast: 120_000 },
      {
        what: 'each chunk in a packet, flood',
        chunks: 500,
        together: 1,
        rate: 0,
        atLeast: 120_000,
      },
      {
        what: '25 chunks in a packet, flood',
        chunks: 2000,
        together: 25,
        rate: 0,
        atLeast: 500_000,
      },
    ]
    for (const way of ways) {
      const chunks = Math.max(way.together, workshop.scaled(way.chunks))
      await compare(reporter, workshop, { ...way, chunks })
    }
  },
}

async function compare(reporter: Reporter, workshop: Workshop, way: Way): Promise<void> {
  const ours: Measured[] = []
  const peer: Measured[] = []
  const input = workshop.files.short(STREAMS * SHORT_RECORD)
  const options = ['--model', 'm', '-q', '-c', String(STREAMS)]
  for (let round = 0; round < ROUNDS; round++) {
    ours.push(
      await measure(workshop, way, (url) =>
        workshop.binary('fanout-complete', ...options, '--url', url, input.path),
      ),
    )
    peer.push(
      await measure(workshop, way, (url) =>
        helper('peer-streams.ts', url, String(STREAMS), String(STREAMS)),
      ),
    )
  }
  const { what, atLeast, rate } = way
  const figure = ({ perSecond, perCpuSecond }: Measured): number =>
    rate > 0 ? perCpuSecond : perSecond
  const unit = rate > 0 ? 'chunks/CPU s' : 'chunks/s'
  const best = Math.max(...ours.map(figure))
  const peers = Math.max(...peer.map(figure))
  reporter.add({
    what: `${what}, against bare undici`,
    ours: `${significant(best)} ${unit}`,
    peer: `${significant(peers)} ${unit}`,
    ratio: best / peers,
    goal: { text: `>= ${significant(atLeast)} ${unit}`, holds: best >= atLeast },
  })
  const memory = Math.max(...ours.map((measured) => measured.memory))
  const peerMemory = Math.max(...peer.map((measured) => measured.memory))
  reporter.add({
    what: `${what}, peak memory`,
    ours: megabytes(memory),
    peer: megabytes(peerMemory),
    ratio: memory / peerMemory,
    goal: { text: `< ${megabytes(MOST_MEMORY)}`, holds: memory < MOST_MEMORY },
  })
}

/** Counts from the moment when all streams are open to the client's exit. */
async function measure(
  workshop: Workshop,
  { chunks, together, rate }: Way,
  command: (url: string) => [string, ...string[]],
): Promise<Measured> {
  const args = [STREAMS, chunks, together, rate].map(String)
  const server = await ServerProcess.start('chunk-server.ts', ...args)
  try {
    let watch: ProcessWatch | undefined
    const started = server.next('started').then(({ at }) => ({ at, usage: watch?.sample() }))
    const finished = await workshop.run(command(server.url), {
      stdout: workshop.path('answers.jsonl'),
      watch: true,
      onStart: (watcher) => {
        watch = watcher
      },
    })
    const endedAt = Date.now()
    const { at, usage } = await started
    if (finished.usage === undefined || usage === undefined) throw new Error('nothing was seen')
    const total = STREAMS * chunks
    return {
      perSecond: total / ((endedAt - at) / 1000),
      perCpuSecond: total / (finished.usage.cpuSeconds - usage.cpuSeconds),
      memory: finished.usage.peakMemory,
    }
  } finally {
    await server.stop()
  }
}
