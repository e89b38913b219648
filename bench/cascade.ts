/**
 * The run that started this project, reproduced: `npm run bench:cascade -- [--requests N] [--speed K]
 * [--sweep N,...]`. The same questions go through the client that lost samples, through its published
 * cure, and through fanout-complete, against simulate-server --profile story over real HTTP, all
 * clocks scaled. Prints a table in Markdown; nothing fails because of time.
 */
import { writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { type CascadeResult, type Client, runClient } from './support/cascade-run.ts'
import { cascadeQuestions, PROFILE, type Question, twin } from './support/cascade-truth.ts'
import { helper, Workshop } from './support/workshop.ts'

/** A run on scaled clocks that takes so much longer than on virtual time measures this machine. */
const DISTORTED = 0.02
const DEFAULTS = '(c) fanout-complete'
const DEFAULT_CONCURRENCY = 128

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '3000' },
    speed: { type: 'string', default: '100' },
    sweep: { type: 'string', default: '32,48,64,80,96,200' },
    dist: { type: 'string', default: fileURLToPath(new URL('../dist', import.meta.url)) },
  },
})

/** fanout-complete on the scaled clock, no time limit of its own changed. */
function fanout(workshop: Workshop, questions: string, name: string, ...options: string[]): Client {
  const clock = ['--clock-speed', values.speed, '--model', 'simulated', '-q']
  return {
    name,
    command: (url) =>
      workshop.binary('fanout-complete', ...clock, ...options, '--url', url, questions),
  }
}

/** The story's script. */
function naive(
  questions: string,
  name: string,
  concurrency: number,
  timeout: number,
  retries: number,
): Client {
  const numbers = [concurrency, timeout, retries].map(String)
  return {
    name,
    command: (url, answers) =>
      helper('peer-cascade.ts', url, questions, answers, ...numbers, values.speed),
  }
}

function contestants(workshop: Workshop, questions: string): Client[] {
  return [
    naive(questions, '(a) OpenAI SDK, 200 at once, 600 s in all', 200, 600, 0),
    naive(questions, '(a) the same, 60 s in all', 200, 60, 0),
    naive(questions, '(b) the cure: 128 at once, 600 s, 3 retries', 128, 600, 3),
    fanout(workshop, questions, DEFAULTS),
    fanout(workshop, questions, '(d) fanout-complete --concurrency auto', '-c', 'auto'),
  ]
}

async function run(workshop: Workshop): Promise<void> {
  const questions = cascadeQuestions(positive('requests', values.requests))
  const path = workshop.path('questions.jsonl')
  const lines = questions.map(({ id, prompt }) => `${JSON.stringify({ id, prompt })}\n`)
  writeFileSync(path, lines.join(''))
  const speed = positive('speed', values.speed)
  const attempt = async (client: Client): Promise<CascadeResult> => {
    const result = await runClient(workshop, client, questions, speed)
    say(`${summary(result)}, load ${loadavg()[0]!.toFixed(2)}`)
    return result
  }
  const fixed = new Map<number, CascadeResult>()
  for (const text of values.sweep.split(',')) {
    const concurrency = positive('sweep', text)
    const client = fanout(workshop, path, `fixed at ${concurrency}`, '-c', String(concurrency))
    fixed.set(concurrency, await attempt(client))
  }
  const results: CascadeResult[] = []
  for (const client of contestants(workshop, path)) results.push(await attempt(client))
  // fanout-complete's default is a fixed concurrency too.
  fixed.set(DEFAULT_CONCURRENCY, results.find(({ name }) => name === DEFAULTS)!)
  report(questions, results, fixed)
}

function report(
  questions: readonly Question[],
  results: readonly CascadeResult[],
  fixed: ReadonlyMap<number, CascadeResult>,
): void {
  const truth = questions.reduce((sum, { tokens }) => sum + tokens, 0) / questions.length
  const sweep = [...fixed].toSorted(([a], [b]) => a - b)
  const [best, { seconds: least }] = sweep.reduce((a, b) => (b[1].seconds < a[1].seconds ? b : a))
  const rows = results.map(({ name, lost, generated, thrownAway, meanKept, seconds }) => [
    name,
    `${lost} (${percent(lost / questions.length, 1)})`,
    `${thrownAway.toLocaleString('en')} (${percent(thrownAway / generated, 1)})`,
    `${meanKept.toFixed(1)} (${percent(meanKept / truth - 1, 2)})`,
    `${Math.round(seconds).toLocaleString('en')} s (${(seconds / least).toFixed(3)})`,
  ])
  const count = questions.length.toLocaleString('en')
  const head = ['client', `lost of ${count}`, 'tokens thrown away', 'mean kept', 'time (of best)']
  const table = [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`)
  console.log(
    `simulate-server --profile ${PROFILE} --speed ${values.speed}, Node ${process.version}`,
  )
  console.log(`True mean ${truth.toFixed(1)} tokens; best fixed concurrency ${best}.\n`)
  console.log(`${table.join('\n')}\n`)
  let worst = 0
  for (const [concurrency, { seconds }] of sweep) {
    const expected = twin(questions, concurrency)
    worst = Math.max(worst, seconds / expected - 1)
    const figures = `${seconds.toFixed(0)} s, on virtual time ${expected.toFixed(0)} s`
    console.log(`fixed at ${concurrency}: ${figures}, ${percent(seconds / expected - 1, 2)}`)
  }
  const verdict = worst > DISTORTED ? 'DISTORTED: take a lower --speed' : 'undistorted'
  console.log(`distortion at most ${percent(worst, 2)}: ${verdict}`)
}

function summary(result: CascadeResult): string {
  const { name, lost, meanKept, seconds, serverCpu, clientCpu } = result
  const cpu = `server ${percent(serverCpu, 0)} and client ${percent(clientCpu, 0)} of a core`
  return `${name}: ${lost} lost, mean ${meanKept.toFixed(1)}, ${seconds.toFixed(0)} s, ${cpu}`
}

function positive(option: string, text: string): number {
  const number = Number(text)
  if (!(number > 0)) throw new Error(`--${option}: '${text}' is no number above 0`)
  return number
}

function percent(share: number, digits: number): string {
  return `${(100 * share).toFixed(digits)} %`
}

function say(text: string): void {
  process.stderr.write(`${text}\n`)
}

const breakOff = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => breakOff.abort())
const workshop = new Workshop({
  size: 1,
  dist: values.dist,
  patience: 0.1,
  signal: breakOff.signal,
})
try {
  await run(workshop)
} finally {
  workshop.remove()
}
