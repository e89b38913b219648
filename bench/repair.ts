import { appendFileSync, closeSync, ftruncateSync, openSync, writeSync } from 'node:fs'
import type { Benchmark } from './support/benchmark.ts'
import { speed, time } from './support/figures.ts'
import { largeRecords } from './support/records.ts'
import type { Reporter } from './support/reporter.ts'
import { inTurn, median, medianRatio } from './support/rounds.ts'
import type { SampleFile } from './support/sample-files.ts'
import type { Workshop } from './support/workshop.ts'

const ROUNDS = 11
const TAIL_ROUNDS = 15
const HUGE = 5e9

export const repair: Benchmark = {
  name: 'repair',
  summary:
    'repair-truncated without damage against validate-jsonl, times, medians of several rounds',
  async run(reporter, workshop) {
    const { files } = workshop
    await undamaged(reporter, workshop, '5.6 kB records', files.large(workshop.scaled(500e6)))
    await undamaged(reporter, workshop, '46-byte records', files.short(workshop.scaled(500e6)))
    await tail(reporter, workshop)
  },
}

async function undamaged(
  reporter: Reporter,
  workshop: Workshop,
  what: string,
  { path, bytes }: SampleFile,
): Promise<void> {
  const pairs = [
    { way: 'as a filter', args: ['-q'], peer: [] },
    { way: '--check', args: ['-q', '--check'], peer: ['-q'] },
  ]
  for (const { way, args, peer } of pairs) {
    const seconds = await inTurn(ROUNDS, {
      ours: () => workshop.seconds(workshop.binary('repair-truncated', ...args, path)),
      validate: () => workshop.seconds(workshop.binary('validate-jsonl', ...peer, path)),
    })
    reporter.add({
      what: `${what}: ${way}`,
      ours: speed(bytes, median(seconds.ours)),
      peer: speed(bytes, median(seconds.validate)),
      ratio: medianRatio(seconds.ours, seconds.validate),
      target: { atMost: 1 },
    })
  }
}

/** Looking at the end must not depend on the size of the file. */
async function tail(reporter: Reporter, workshop: Workshop): Promise<void> {
  const path = workshop.path('huge.jsonl')
  const fd = openSync(path, 'w')
  const record = largeRecords(3)
  writeSync(fd, record(0))
  ftruncateSync(fd, HUGE)
  closeSync(fd)
  appendFileSync(path, `\n${record(1)}${record(2)}`)
  const seconds = await inTurn(TAIL_ROUNDS, {
    tail: () => workshop.seconds(workshop.binary('repair-truncated', '--tail', '--check', path)),
    start: () => workshop.seconds(workshop.binary('repair-truncated', '--version')),
  })
  reporter.add({
    what: '--tail on a file of 5 GB against --version, medians',
    ours: time(median(seconds.tail)),
    peer: time(median(seconds.start)),
    ratio: median(seconds.tail) / median(seconds.start),
    target: { atMost: 2 },
  })
}
