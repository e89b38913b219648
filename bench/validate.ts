import type { Benchmark } from './support/benchmark.ts'
import { speed, time } from './support/figures.ts'
import { findProgram } from './support/programs.ts'
import type { Reporter } from './support/reporter.ts'
import { inTurn } from './support/rounds.ts'
import type { SampleFile } from './support/sample-files.ts'
import type { Workshop } from './support/workshop.ts'

const ROUNDS = 5
/** jq takes a quarter of a minute for the file of large records, and twice that for the other. */
const JQ_ROUNDS = 2

export const validate: Benchmark = {
  name: 'validate',
  summary: 'validate-jsonl as a whole process, best of several rounds in turn',
  async run(reporter, workshop) {
    const { files } = workshop
    const large = files.large(workshop.scaled(500e6))
    const short = files.short(workshop.scaled(500e6))
    await againstWc(reporter, workshop, '5.6 kB records', large, 1 / 10)
    await againstJq(reporter, workshop, '5.6 kB records', large, [10, 20])
    await againstWc(reporter, workshop, '46-byte records', short, 1 / 18)
    await againstJq(reporter, workshop, '46-byte records', short, [18])
    await passingOn(reporter, workshop, '5.6 kB records', large)
    await passingOn(reporter, workshop, '46-byte records', short)
  },
}

async function againstWc(
  reporter: Reporter,
  workshop: Workshop,
  what: string,
  { path, bytes }: SampleFile,
  atLeast: number,
): Promise<void> {
  const wc = findProgram('wc')
  if (wc === undefined) return reporter.skip(`${what}: -q against wc -l`, 'no wc here')
  const seconds = await inTurn(ROUNDS, {
    ours: () => workshop.seconds(workshop.binary('validate-jsonl', '-q', path)),
    wc: () => workshop.seconds([wc, '-l', path]),
  })
  const ours = Math.min(...seconds.ours)
  const peer = Math.min(...seconds.wc)
  reporter.add({
    what: `${what}: -q against wc -l`,
    ours: speed(bytes, ours),
    peer: speed(bytes, peer),
    ratio: peer / ours,
    target: { atLeast },
  })
}

async function againstJq(
  reporter: Reporter,
  workshop: Workshop,
  what: string,
  { path, bytes }: SampleFile,
  targets: readonly number[],
): Promise<void> {
  const jq = findProgram('jq')
  if (jq === undefined) return reporter.skip(`${what}: -q against jq -c .`, 'jq is not installed')
  const once = (): Promise<number> =>
    workshop.seconds(workshop.binary('validate-jsonl', '-q', path))
  // jq's ten seconds are an average already; of half seconds the best of a few is one.
  const seconds = await inTurn(JQ_ROUNDS, {
    ours: once,
    jq: () => workshop.seconds([jq, '-c', '.', path]),
    again: once,
  })
  const ours = Math.min(...seconds.ours, ...seconds.again)
  const peer = Math.min(...seconds.jq)
  for (const atLeast of targets) {
    reporter.add({
      what: `${what}: -q against jq -c .`,
      ours: speed(bytes, ours),
      peer: speed(bytes, peer),
      ratio: peer / ours,
      target: { atLeast },
    })
  }
}

/** Passing records on may cost what writing them costs: the time above -q against the time of cat. */
async function passingOn(
  reporter: Reporter,
  workshop: Workshop,
  what: string,
  { path }: SampleFile,
): Promise<void> {
  const stdout = workshop.path('copy.jsonl')
  const seconds = await inTurn(ROUNDS, {
    passing: () => workshop.seconds(workshop.binary('validate-jsonl', path), { stdout }),
    quiet: () => workshop.seconds(workshop.binary('validate-jsonl', '-q', path)),
    cat: () => workshop.seconds(['cat', path], { stdout }),
  })
  const extra = Math.max(Math.min(...seconds.passing) - Math.min(...seconds.quiet), 0)
  const cat = Math.min(...seconds.cat)
  reporter.add({
    what: `${what}: passing on to a file, above -q, against cat`,
    ours: time(extra),
    peer: time(cat),
    ratio: extra / cat,
    target: { atMost: 1 },
  })
}
