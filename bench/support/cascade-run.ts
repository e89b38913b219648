import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { StatsSnapshot } from '../../src/simulator/ledger.ts'
import { PROFILE, type Question } from './cascade-truth.ts'
import { runProcess } from './run-process.ts'
import { SimulatorProcess } from './simulator-process.ts'
import type { Workshop } from './workshop.ts'

/** Milliseconds of the wall between two looks at the server: how exactly its times are known. */
const LOOK_EVERY = 25

/** A way to ask the questions. */
export interface Client {
  name: string
  /** Its command line for a server and a file that the answers go to. */
  command(url: string, answers: string): [string, ...string[]]
}

/** What became of a run. */
export interface CascadeResult {
  name: string
  lost: number
  /** Tokens that the server generated, and those of them that are in no answer kept. */
  generated: number
  thrownAway: number
  /** Mean tokens of the answers kept. */
  meanKept: number
  /** Server time from the first request to the end of the last, in seconds. */
  seconds: number
  /** Shares of a core while it ran. */
  serverCpu: number
  clientCpu: number
}

/** Runs a client against a server of its own. */
export async function runClient(
  workshop: Workshop,
  client: Client,
  questions: readonly Question[],
  speed: number,
): Promise<CascadeResult> {
  const options = ['--port', '0', '-q', '--profile', PROFILE, '--speed', String(speed)]
  // Idle connections stay: with a scaled clock they would be closed while a client takes them.
  const server = await SimulatorProcess.start(
    workshop.binary('simulate-server', ...options, '--keep-alive', '24h'),
  )
  const look = new Look(server.url)
  try {
    const answers = workshop.path('answers.jsonl')
    const { usage, seconds } = await runProcess(client.command(server.url, answers), {
      stdout: answers,
      signal: workshop.signal,
      exitCodes: [0, 1],
      watch: true,
    })
    const stats = await look.end()
    const kept = keptTokens(readFileSync(answers, 'utf8'), questions)
    const sum = kept.reduce((total, tokens) => total + tokens, 0)
    return {
      name: client.name,
      lost: questions.length - kept.length,
      generated: stats.tokens.generated,
      thrownAway: stats.tokens.generated - sum,
      meanKept: sum / kept.length,
      seconds: look.seconds,
      serverCpu: server.cpuSeconds / seconds,
      clientCpu: (usage?.cpuSeconds ?? 0) / seconds,
    }
  } finally {
    await look.end()
    await server.stop()
  }
}

/**
 * Tokens of each answer.
 *
 * @throws Error for one that is not as long as the server said: then all figures are worth nothing
 */
function keptTokens(answers: string, questions: readonly Question[]): number[] {
  const seen = new Set<number>()
  return answers
    .split('\n')
    .slice(0, -1)
    .map((line) => {
      const { id, usage } = JSON.parse(line) as { id: number; usage: { completion_tokens: number } }
      const tokens = usage.completion_tokens
      if (seen.has(id)) throw new Error(`answer ${id} came twice`)
      if (tokens !== questions[id]?.tokens) throw new Error(`answer ${id} is not what it should be`)
      seen.add(id)
      return tokens
    })
}

/** Looks at a server's counts all the time, since its first and its last moment are all that counts. */
class Look {
  #url: string
  #ended = false
  #from: number | undefined
  #until = 0
  #last: StatsSnapshot | undefined
  #done: Promise<void>

  constructor(url: string) {
    this.#url = url.replace('/v1', '/stats')
    this.#done = this.#look()
  }

  /** Server time between the first request and the end of the last. */
  get seconds(): number {
    return (this.#until - (this.#from ?? 0)) / 1000
  }

  async end(): Promise<StatsSnapshot> {
    this.#ended = true
    await this.#done
    if (this.#last === undefined) throw new Error('the server did not count')
    return this.#last
  }

  async #look(): Promise<void> {
    for (let ended = false; !ended; ) {
      ended = this.#ended
      const stats = (await (await fetch(this.#url)).json()) as StatsSnapshot
      this.#last = stats
      if (stats.requests.total > 0) this.#from ??= stats.uptime_ms
      if (stats.requests.open > 0) this.#until = stats.uptime_ms
      if (!ended) await sleep(LOOK_EVERY)
    }
  }
}
