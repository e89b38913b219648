import type { Benchmark } from './support/benchmark.ts'
import { megabytes } from './support/figures.ts'
import { canWatch } from './support/process-watch.ts'
import type { Reporter } from './support/reporter.ts'
import type { SampleFile } from './support/sample-files.ts'
import { ServerProcess } from './support/server-process.ts'
import { SimulatorProcess } from './support/simulator-process.ts'
import { helper, type Workshop } from './support/workshop.ts'

const MOST = 200e6
/**
 * Bytes that the peak may grow by from the small input to the large one and still be flat: a second
 * thread, from 160 MB of input on, takes 15 to 25 MB whatever comes. A ratio would punish a small base.
 */
const GROWTH = 32e6
const SMALL = 10e6
const LARGE = 1000e6
/** fanout-complete waits for a server: less input, but many records of this many bytes. */
const FANOUT_LARGE = 200e6
const QUESTION = 1000
const CONCURRENCY = 128
/** From some ten thousand on the heap has the size that it keeps: 65 MB after 1,000, 109 after 20,000. */
const SIMULATED = [20_000, 60_000] as const

export const memory: Benchmark = {
  name: 'memory',
  summary: 'peak resident memory at a large input, against the same binary at a small one',
  async run(reporter, workshop) {
    if (!canWatch) return reporter.skip('memory', 'read from /proc, which Linux alone has')
    const { files } = workshop
    const inputs = [SMALL, workshop.scaled(LARGE)].map((bytes) => files.large(bytes))
    const completed = files.empty().path
    const commands: Record<string, (path: string) => [string, ...string[]]> = {
      'validate-jsonl': (path) => workshop.binary('validate-jsonl', path),
      'repair-truncated': (path) => workshop.binary('repair-truncated', '-q', path),
      'dedupe-completed': (path) =>
        workshop.binary('dedupe-completed', '-q', '--completed', completed, path),
    }
    for (const [name, command] of Object.entries(commands)) {
      const peaks: number[] = []
      for (const { path } of inputs) peaks.push(await peakOf(workshop, command(path)))
      report(reporter, name, peaks, inputs.map(sizeOf))
    }
    await fanout(reporter, workshop)
    await simulator(reporter, workshop)
  },
}

async function fanout(reporter: Reporter, workshop: Workshop): Promise<void> {
  const server = await ServerProcess.start('small-server.ts')
  try {
    const inputs = [SMALL, workshop.scaled(FANOUT_LARGE)].map((bytes) =>
      workshop.files.questions(bytes, QUESTION),
    )
    const peaks: number[] = []
    for (const { path } of inputs) {
      const options = ['--url', server.url, '--model', 'm', '--no-stream', '-q']
      peaks.push(
        await peakOf(
          workshop,
          workshop.binary('fanout-complete', ...options, '-c', String(CONCURRENCY), path),
        ),
      )
    }
    report(reporter, 'fanout-complete', peaks, inputs.map(sizeOf))
  } finally {
    await server.stop()
  }
}

/** The server's peak after so many requests, its answers short and its clock fast. */
async function simulator(reporter: Reporter, workshop: Workshop): Promise<void> {
  // The clock is fast for idle connections too: they must outlive the run.
  const clock = ['--speed', '1000', '--keep-alive', '1000000s']
  const options = ['--port', '0', '--model', 'm', '-q', '--mean-tokens', '20', ...clock]
  const peaks: number[] = []
  const counts = [SIMULATED[0], Math.max(SIMULATED[0], workshop.scaled(SIMULATED[1]))]
  for (const count of counts) {
    const command = workshop.binary('simulate-server', ...options)
    const server = await SimulatorProcess.start(command)
    try {
      const args = [server.url, String(count), String(CONCURRENCY)]
      await workshop.run(helper('peer-undici.ts', 'client', ...args))
      peaks.push(server.peakMemory)
    } finally {
      await server.stop()
    }
  }
  const sizes = counts.map((count) => `${count} requests`)
  report(reporter, 'simulate-server', peaks, sizes)
}

async function peakOf(workshop: Workshop, command: [string, ...string[]]): Promise<number> {
  const { usage } = await workshop.run(command, { watch: true })
  return usage?.peakMemory ?? 0
}

function sizeOf({ bytes, records }: SampleFile): string {
  return `${megabytes(bytes)}, ${records} records`
}

function report(
  reporter: Reporter,
  what: string,
  [small = 0, large = 0]: readonly number[],
  sizes: readonly string[],
): void {
  reporter.add({
    what: `${what}: ${sizes[1]}, against ${sizes[0]}`,
    ours: megabytes(large),
    peer: megabytes(small),
    ratio: large / small,
    goal: {
      text: `< ${megabytes(MOST)}, at most ${megabytes(GROWTH)} more`,
      holds: large < MOST && large - small <= GROWTH,
    },
  })
}
