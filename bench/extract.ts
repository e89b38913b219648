import { spawnSync } from 'node:child_process'
import type { Benchmark } from './support/benchmark.ts'
import { speed } from './support/figures.ts'
import { findProgram } from './support/programs.ts'
import { inTurn } from './support/rounds.ts'
import type { Workshop } from './support/workshop.ts'

const ROUNDS = 5

/** Reads all rows of a Parquet file one by one, as a script of an afternoon does. */
const PYARROW = `
import sys, pyarrow.parquet as parquet
rows = 0
for batch in parquet.ParquetFile(sys.argv[1]).iter_batches():
    rows += len(batch.to_pylist())
`

const best = (figures: number[]): number => Math.min(...figures)

export const extract: Benchmark = {
  name: 'extract',
  summary:
    'extract-prompts and export-conversations against validate-jsonl over the same file, and Parquet',
  async run(reporter, workshop) {
    const input = workshop.files.large(workshop.scaled(500e6))
    const run = (name: string, ...args: string[]): Promise<number> =>
      workshop.seconds(workshop.binary(name, '-q', ...args, input.path))
    const seconds = await inTurn(ROUNDS, {
      extract: () => run('extract-prompts'),
      export: () => run('export-conversations', '--to', 'specforge'),
      validate: () => run('validate-jsonl'),
    })
    for (const [name, figures, atMost] of [
      ['extract-prompts', seconds.extract, 2],
      ['export-conversations --to specforge', seconds.export, 2.5],
    ] as const) {
      reporter.add({
        what: `${name}, 5.6 kB records`,
        ours: speed(input.bytes, best(figures)),
        peer: speed(input.bytes, best(seconds.validate)),
        ratio: best(figures) / best(seconds.validate),
        target: { atMost },
      })
    }
    await shortRows(reporter, workshop)
    await parquet(reporter, workshop)
  },
}

/** Rows of which a name and a question are most of the work, too few for a second thread. */
async function shortRows(
  reporter: Parameters<Benchmark['run']>[0],
  workshop: Workshop,
): Promise<void> {
  const input = workshop.files.conversations(workshop.scaled(200e6))
  const run = (name: string): Promise<number> =>
    workshop.seconds(workshop.binary(name, '-q', input.path))
  const seconds = await inTurn(ROUNDS, {
    extract: () => run('extract-prompts'),
    validate: () => run('validate-jsonl'),
  })
  reporter.add({
    what: 'extract-prompts, 520 B rows',
    ours: speed(input.bytes, best(seconds.extract)),
    peer: speed(input.bytes, best(seconds.validate)),
    ratio: best(seconds.extract) / best(seconds.validate),
    target: { atMost: 2 },
  })
}

/** The same records as Parquet, against pyarrow where it is installed. */
async function parquet(
  reporter: Parameters<Benchmark['run']>[0],
  workshop: Workshop,
): Promise<void> {
  const input = workshop.files.large(workshop.scaled(250e6))
  const file = workshop.path('large.parquet')
  const args = ['-q', '--keep-duplicates', '--to', 'parquet', '-o', file, input.path]
  await workshop.seconds(workshop.binary('export-conversations', ...args))
  const python = findProgram('python3')
  const hasPyarrow =
    python !== undefined && spawnSync(python, ['-c', 'import pyarrow.parquet']).status === 0
  const extract = (): Promise<number> =>
    workshop.seconds(workshop.binary('extract-prompts', '-q', file))
  const pyarrow = (): Promise<number> => workshop.seconds([python!, '-c', PYARROW, file])
  const figures: { extract: number[]; pyarrow?: number[] } = hasPyarrow
    ? await inTurn(ROUNDS, { extract, pyarrow })
    : await inTurn(ROUNDS, { extract })
  const counted = spawnSync('wc', ['-l', input.path]).stdout.toString().trim().split(' ')[0]
  const rate = (time: number): string =>
    `${Math.round(Number(counted) / time).toLocaleString('en')} rows/s`
  reporter.add({
    what: 'extract-prompts from Parquet against pyarrow, row by row',
    ours: rate(best(figures.extract)),
    peer: figures.pyarrow === undefined ? 'pyarrow is not installed' : rate(best(figures.pyarrow)),
    ...(figures.pyarrow !== undefined && {
      ratio: best(figures.pyarrow) / best(figures.extract),
      target: { atLeast: 1 },
    }),
  })
}
