import { TimeBins } from './time-bins.ts'
import { ToldValues } from './told-values.ts'

const FIELDS = [
  'in_flight',
  'limit',
  'tokens_per_second',
  'requests_per_second',
  'first_token_ms',
] as const

/** What a trace tells over time: the means of each bin. */
export interface TraceReport {
  lines: number
  bin_s: number
  bins: ({ time: string } & Record<(typeof FIELDS)[number], number | null>)[]
  /** How often the limit moved for which reason. */
  reasons: Record<string, number>
  /** The limit was that of --concurrency auto. */
  auto: boolean
  /** How often it moved because the server had preempted requests: its KV cache was full. */
  preempted: number
}

/** The reason of a limit that a number set; auto gives others. */
const FIXED = 'fixed'
/** As auto words it, for one of several servers, too. */
const PREEMPTED = /\bpreemptions a minute\b/

/** Adds up the lines of --trace. */
export class TraceReader {
  #lines = 0
  /** A sum for each field, then how many there were. */
  #bins = new TimeBins(2 * FIELDS.length)
  #reasons = new Map<string, number>()
  #limit: unknown
  #auto = false
  #preempted = 0

  /**
   * @param place where in the bytes the line begins
   * @returns false where it is no line of a trace
   * @throws ImpossibleValue where a number or date in it cannot be
   */
  add(line: unknown, place: number): boolean {
    const state = line as Record<string, unknown> | null
    if (typeof state?.time !== 'string') return false
    const told = new ToldValues(state, place)
    const at = told.date('time')!
    const values = FIELDS.map((field) =>
      field === 'first_token_ms' ? told.duration(field) : told.count(field),
    )
    this.#lines++
    for (const [index, value] of values.entries()) {
      if (value === undefined) continue
      this.#bins.add(at, index, value)
      this.#bins.add(at, FIELDS.length + index, 1)
    }
    const { limit, reason } = state
    if (typeof reason === 'string' && reason !== FIXED) this.#auto = true
    if (limit !== this.#limit && this.#limit !== undefined && typeof reason === 'string') {
      if (PREEMPTED.test(reason)) this.#preempted++
      // 14 waiting at the server, 15 waiting at the server: one reason.
      const key = reason.replaceAll(/\d+/g, 'N').slice(0, 80)
      if (this.#reasons.has(key) || this.#reasons.size < 50) {
        this.#reasons.set(key, (this.#reasons.get(key) ?? 0) + 1)
      }
    }
    this.#limit = limit
    return true
  }

  toJSON(): TraceReport {
    const bins = this.#bins.list().map(({ at, sums }) => {
      const means = FIELDS.map((field, index) => {
        const count = sums[FIELDS.length + index]!
        return [field, count > 0 ? sums[index]! / count : null]
      })
      const time = new Date(at).toISOString()
      return {
        time,
        ...(Object.fromEntries(means) as Record<(typeof FIELDS)[number], number | null>),
      }
    })
    const reasons = Object.fromEntries([...this.#reasons].toSorted((a, b) => b[1] - a[1]))
    return {
      lines: this.#lines,
      bin_s: this.#bins.width / 1000,
      bins,
      reasons,
      auto: this.#auto,
      preempted: this.#preempted,
    }
  }
}
