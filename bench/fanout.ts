import type { Benchmark } from './support/benchmark.ts'
import { SHORT_RECORD } from './support/records.ts'
import type { Reporter } from './support/reporter.ts'
import { significant } from './support/reporter.ts'
import { inTurn } from './support/rounds.ts'
import type { Finished } from './support/run-process.ts'
import { ServerProcess } from './support/server-process.ts'
import { helper, type Workshop } from './support/workshop.ts'

const ROUNDS = 5
const CONCURRENCY = 128
const RECORDS = 40_000
/** The SDK gets fewer: it would take half a minute a round. */
const SDK_PART = 8

export const fanout: Benchmark = {
  name: 'fanout',
  summary: `fanout-complete, ${CONCURRENCY} at a time, not streamed, best of several rounds in turn`,
  async run(reporter, workshop) {
    const server = await ServerProcess.start('small-server.ts')
    try {
      await compare(reporter, workshop, server)
    } finally {
      await server.stop()
    }
  },
}

async function compare(
  reporter: Reporter,
  workshop: Workshop,
  server: ServerProcess,
): Promise<void> {
  const input = workshop.files.short(workshop.scaled(RECORDS * SHORT_RECORD))
  const count = input.records
  const options = ['--model', 'm', '--no-stream', '-q', '-c', String(CONCURRENCY)]
  const command = workshop.binary('fanout-complete', ...options, '--url', server.url, input.path)
  const peer = (name: string, requests: number, ...words: string[]): [string, ...string[]] =>
    helper(name, ...words, server.url, String(requests), String(CONCURRENCY))
  const cpu = new CpuCounter()
  const rate = async (command: [string, ...string[]], name?: string): Promise<number> => {
    const finished = await workshop.run(command, {
      stdout: workshop.path('answers.jsonl'),
      watch: name !== undefined,
    })
    const { requests, seconds } = await server.report()
    if (name !== undefined) cpu.add(name, finished, requests)
    return requests / seconds
  }
  const rates = await inTurn(ROUNDS, {
    ours: () => rate(command, 'ours'),
    client: () => rate(peer('peer-undici.ts', count, 'client'), 'client'),
    pool: () => rate(peer('peer-undici.ts', count, 'pool')),
    sdk: () => rate(peer('peer-openai.ts', Math.ceil(count / SDK_PART))),
    raw: () => rate(peer('peer-raw.ts', count)),
  })
  const best = (figures: number[]): number => Math.max(...figures)
  const ours = best(rates.ours)
  const add = (what: string, figures: number[], atLeast?: number): void =>
    reporter.add({
      what,
      ours: perSecond(ours),
      peer: perSecond(best(figures)),
      ratio: ours / best(figures),
      ...(atLeast !== undefined && { target: { atLeast } }),
    })
  add('requests against the OpenAI Node SDK', rates.sdk, 5)
  add('requests against undici, a Client per slot', rates.client, 1 / 2)
  add('requests against undici, Pool.request', rates.pool, 1 / 2)
  add("requests against the server's own limit (raw sockets)", rates.raw)
  cpu.report(reporter)
}

function perSecond(rate: number): string {
  return `${significant(rate)} req/s`
}

/** CPU time per request, which what else the machine does changes less than rates. */
class CpuCounter {
  #least = new Map<string, number>()

  add(name: string, { usage }: Finished, requests: number): void {
    if (usage === undefined) return
    const micros = (usage.cpuSeconds * 1e6) / requests
    this.#least.set(name, Math.min(micros, this.#least.get(name) ?? Number.POSITIVE_INFINITY))
  }

  report(reporter: Reporter): void {
    const ours = this.#least.get('ours')
    const peer = this.#least.get('client')
    const what = 'CPU time a request, start-up included, against undici, Client'
    if (ours === undefined || peer === undefined) return reporter.skip(what, 'Linux only')
    reporter.add({
      what,
      ours: `${significant(ours)} µs`,
      peer: `${significant(peer)} µs`,
      ratio: ours / peer,
    })
  }
}
