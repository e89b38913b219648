import type { Benchmark } from './support/benchmark.ts'
import { speed } from './support/figures.ts'
import { inTurn, median, medianRatio } from './support/rounds.ts'

const ROUNDS = 11

export const dedupe: Benchmark = {
  name: 'dedupe',
  summary:
    'dedupe-completed against validate-jsonl over the same bytes, times, medians of several rounds',
  async run(reporter, workshop) {
    const { files } = workshop
    const cases = [
      {
        what: '5.6 kB records',
        input: files.large(workshop.scaled(500e6)),
        half: files.large(workshop.scaled(250e6)),
      },
      {
        what: '46-byte records',
        input: files.short(workshop.scaled(140e6)),
        half: files.short(workshop.scaled(70e6)),
      },
    ]
    for (const { what, input, half } of cases) {
      const dedupeAgainst = (completed: string): Promise<number> =>
        workshop.seconds(
          workshop.binary('dedupe-completed', '-q', '--completed', completed, input.path),
        )
      const validate = (...paths: string[]): Promise<number> =>
        workshop.seconds(workshop.binary('validate-jsonl', ...paths))
      const seconds = await inTurn(ROUNDS, {
        none: () => dedupeAgainst(files.empty().path),
        validate: () => validate(input.path),
        half: () => dedupeAgainst(half.path),
        validateBoth: () => validate(half.path, input.path),
      })
      reporter.add({
        what: `${what}: nothing completed`,
        ours: speed(input.bytes, median(seconds.none)),
        peer: speed(input.bytes, median(seconds.validate)),
        ratio: medianRatio(seconds.none, seconds.validate),
        target: { atMost: 1 },
      })
      const bytes = input.bytes + half.bytes
      reporter.add({
        what: `${what}: half of it completed, both files read`,
        ours: speed(bytes, median(seconds.half)),
        peer: speed(bytes, median(seconds.validateBoth)),
        ratio: medianRatio(seconds.half, seconds.validateBoth),
        target: { atMost: 1 },
      })
    }
  },
}
