/**
 * Runs the benchmarks that are named, or all: `npm run bench -- [--quick] [--size MB] [NAME...]`.
 * Prints a table of ratios to peers measured in the same run; nothing fails because of time.
 */
import { availableParallelism, cpus, loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { dedupe } from './dedupe.ts'
import { extract } from './extract.ts'
import { fanout } from './fanout.ts'
import { memory } from './memory.ts'
import { pace } from './pace.ts'
import { repair } from './repair.ts'
import { startup } from './startup.ts'
import { streams } from './streams.ts'
import type { Benchmark } from './support/benchmark.ts'
import { Reporter } from './support/reporter.ts'
import { Workshop } from './support/workshop.ts'
import { validate } from './validate.ts'

const BENCHMARKS: readonly Benchmark[] = [
  startup,
  validate,
  dedupe,
  repair,
  extract,
  fanout,
  streams,
  memory,
  pace,
]

const FULL_SIZE = 500
const PATIENCE = 2
/** Above this share of the cores somebody else is at work, and figures are worse than they should be. */
const BUSY = 0.25

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: 'string' },
    quick: { type: 'boolean' },
    dist: { type: 'string' },
    patience: { type: 'string' },
    help: { type: 'boolean', short: 'h' },
  },
})

/** The benchmarks asked for. */
function chosen(names: readonly string[]): readonly Benchmark[] {
  const unknown = names.filter((name) => !BENCHMARKS.some((benchmark) => benchmark.name === name))
  if (unknown.length > 0) throw new Error(`no such benchmark: ${unknown.join(', ')}`)
  return names.length === 0 ? BENCHMARKS : BENCHMARKS.filter(({ name }) => names.includes(name))
}

function positive(name: 'size' | 'patience', otherwise: number): number {
  const number = Number(values[name] ?? otherwise)
  if (!(number > 0)) throw new Error(`--${name}: '${values[name]}' is no number above 0`)
  return number
}

function help(): string {
  const list = BENCHMARKS.map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`)
  return `Usage: npm run bench -- [options] [NAME...]

  --size MB    size of the file of large records, others in proportion (default ${FULL_SIZE})
  --quick      a tenth of all sizes
  --dist DIR   measure the binaries in DIR/bin (default dist)
  --patience S seconds that each run waits for a moment in which nothing else runs (default ${PATIENCE})

${list.join('\n')}
`
}

/** What the figures were measured on. */
function machine(): string {
  const load = loadavg()[0]!
  const busy = load > availableParallelism() * BUSY ? ' (OTHER WORK IS RUNNING: expect noise)' : ''
  const cpu = cpus()[0]?.model ?? 'unknown processor'
  return `Node ${process.version}, ${availableParallelism()} x ${cpu}, load ${load.toFixed(2)}${busy}`
}

/** A benchmark that breaks down is told as such, and the others go on. */
async function attempt(
  benchmark: Benchmark,
  reporter: Reporter,
  workshop: Workshop,
): Promise<void> {
  try {
    await benchmark.run(reporter, workshop)
  } catch (error) {
    if (workshop.signal.aborted) throw error
    reporter.skip(benchmark.name, 'it broke down, see above')
    process.stderr.write(`${String(error)}\n`)
    process.exitCode = 1
  }
}

async function run(benchmarks: readonly Benchmark[]): Promise<void> {
  const breakOff = new AbortController()
  // Not once: `timeout` sends its signal to the process and again to its group.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => breakOff.abort())
  const dist = values.dist ?? fileURLToPath(new URL('../dist', import.meta.url))
  const size = positive('size', FULL_SIZE) / (values.quick ? 10 : 1)
  const workshop = new Workshop({
    size,
    dist,
    patience: positive('patience', PATIENCE),
    signal: breakOff.signal,
  })
  const reporter = new Reporter()
  const where = machine()
  process.stderr.write(`${where}\n`)
  try {
    for (const benchmark of benchmarks) {
      reporter.begin(benchmark.name, benchmark.summary)
      await attempt(benchmark, reporter, workshop)
    }
  } catch (error) {
    if (!breakOff.signal.aborted) throw error
    process.exitCode = 130
  } finally {
    workshop.remove()
    const { disturbed } = workshop.quiet
    if (disturbed > 0) reporter.note(`${disturbed} runs began while something else was running`)
    process.stdout.write(`\n${where}, --size ${size}\n\n${reporter.text()}`)
  }
}

if (values.help) process.stdout.write(help())
else await run(chosen(positionals))
