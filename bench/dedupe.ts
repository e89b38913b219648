import type { Benchmark } from './support/benchmark.ts'
import { speed } from './support/figures.ts'
import { inTurn } from './support/rounds.ts'

const ROUNDS = 5

export const dedupe: Benchmark = {
  name: 'dedupe',
  summary:
    'dedupe-completed against validate-jsonl over the same bytes, times, best of several rounds',
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
        half: () => dedupeAgainst(half.path),
        validate: () => validate(input.path),
        validateBoth: () => validate(half.path, input.path),
      })
      const best = (figures: number[]): number => Math.min(...figures)
      reporter.add({
        what: `${what}: nothing completed`,
        ours: speed(input.bytes, best(seconds.none)),
        peer: speed(input.bytes, best(seconds.validate)),
        ratio: best(seconds.none) / best(seconds.validate),
        target: { atMost: 1 },
      })
      const bytes = input.bytes + half.bytes
      reporter.add({
        what: `${what}: half of it completed, both files read`,
        ours: speed(bytes, best(seconds.half)),
        peer: speed(bytes, best(seconds.validateBoth)),
        ratio: best(seconds.half) / best(seconds.validateBoth),
        target: { atMost: 1 },
      })
    }
  },
}
