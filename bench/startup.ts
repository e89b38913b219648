import type { Benchmark } from './support/benchmark.ts'
import { time } from './support/figures.ts'
import { inTurn, median } from './support/rounds.ts'

const ROUNDS = 15
const BINARIES = [
  'validate-jsonl',
  'repair-truncated',
  'dedupe-completed',
  'fanout-complete',
  'simulate-server',
]

export const startup: Benchmark = {
  name: 'startup',
  summary: 'start-up against node -e 0, medians of runs in turn',
  async run(reporter, workshop) {
    const node: [string, ...string[]] = [process.execPath, '-e', '0']
    const empty = workshop.files.empty().path
    for (const name of BINARIES) {
      const emptyInput =
        name === 'simulate-server'
          ? undefined
          : name === 'dedupe-completed'
            ? ['--completed', empty, empty]
            : [empty]
      const ways = [
        { args: ['--version'], what: '--version', target: { atMost: 2.5 } },
        { args: ['--help'], what: '--help' },
        ...(emptyInput ? [{ args: emptyInput, what: 'an empty input' }] : []),
      ]
      for (const { args, what, target } of ways) {
        const seconds = await inTurn(ROUNDS, {
          ours: () => workshop.seconds(workshop.binary(name, ...args)),
          node: () => workshop.seconds(node),
        })
        reporter.add({
          what: `${name}: ${what}`,
          ours: time(median(seconds.ours)),
          peer: time(median(seconds.node)),
          ratio: median(seconds.ours) / median(seconds.node),
          ...(target && { target }),
        })
      }
    }
  },
}
