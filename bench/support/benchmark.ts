import type { Reporter } from './reporter.ts'
import type { Workshop } from './workshop.ts'

/** One benchmark: what it measures against whom, as rows for the table. */
export interface Benchmark {
  name: string
  /** One line, lower case, no full stop. */
  summary: string
  run(reporter: Reporter, workshop: Workshop): Promise<void>
}
