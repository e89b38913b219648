import { TimeBins } from './time-bins.ts'
import { ToldValues } from './told-values.ts'

const FIELDS = [
  'in_flight',
  'limit',
  'tokens_per_second',
  'requests_per_second',
  'first_token_ms',
] as const

/** A sum for each field, then how many told it, then how many lines there were. */
const LINES = 2 * FIELDS.length

/**
 * What a trace tells over time: the means of each bin. A line that comes a little late leaves one bin
 * without any, which has the values of the one before it.
 */
export interface TraceReport {
  lines: number
  bin_s: number
  bins: ({ time: string } & Record<(typeof FIELDS)[number], number | null>)[]
  /** How often the limit moved for which reason. */
  reasons: Record<string, number>
  /** The limit was that of --concurrency auto. */
  auto: boolean
  /** How many servers have a limit of their own, of which each counts for itself; else 1. */
  servers: number
  /** How often it moved because a server had preempted requests: its KV cache was full. */
  preempted: number
  /** At how many of the servers. */
  preempted_servers: number
}

/** The reason of a limit that a number set; auto gives others. */
const FIXED = 'fixed'
/** As auto words it, and older traces for one of several servers. */
const PREEMPTED = /\bpreemptions a minute\b/
/** Servers and reasons at most: damaged data must not fill the memory. */
const MOST_SERVERS = 1000
const MOST_REASONS = 50

/** A limit with the reason that it has. */
interface Paced {
  /** Undefined: the limit is that of the run. */
  url?: string
  limit: number
  reason: string
}

/** Adds up the lines of --trace. */
export class TraceReader {
  #lines = 0
  #bins = new TimeBins(LINES + 1)
  #reasons = new Map<string, number>()
  /** The last limit of each server, and how often it moved for preemptions. */
  #servers = new Map<string | undefined, { limit: number; preempted: number }>()
  #auto = false

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
    this.#bins.add(at, LINES, 1)
    for (const [index, value] of values.entries()) {
      if (value === undefined) continue
      this.#bins.add(at, index, value)
      this.#bins.add(at, FIELDS.length + index, 1)
    }
    for (const paced of pacedOf(state)) this.#pace(paced)
    return true
  }

  toJSON(): TraceReport {
    const told = this.#bins.list()
    const bins = told.map(({ at }, index) => {
      const isLate = isEmpty(told[index]) && !isEmpty(told[index - 1]) && !isEmpty(told[index + 1])
      const { sums } = told[isLate ? index - 1 : index]!
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
    const preempted = [...this.#servers.values()].map((server) => server.preempted)
    return {
      lines: this.#lines,
      bin_s: this.#bins.width / 1000,
      bins,
      reasons,
      auto: this.#auto,
      servers: Math.max(1, [...this.#servers.keys()].filter((url) => url !== undefined).length),
      preempted: preempted.reduce((sum, times) => sum + times, 0),
      preempted_servers: preempted.filter((times) => times > 0).length,
    }
  }

  #pace({ url, limit, reason }: Paced): void {
    if (reason !== FIXED) this.#auto = true
    const server = this.#servers.get(url)
    if (server === undefined) {
      if (this.#servers.size < MOST_SERVERS) this.#servers.set(url, { limit, preempted: 0 })
      return
    }
    if (limit === server.limit) return
    server.limit = limit
    if (PREEMPTED.test(reason)) server.preempted++
    // 14 waiting at the server, 15 waiting at the server: one reason.
    const key = reason.replaceAll(/\d+/g, 'N').slice(0, 80)
    if (this.#reasons.has(key) || this.#reasons.size < MOST_REASONS) {
      this.#reasons.set(key, (this.#reasons.get(key) ?? 0) + 1)
    }
  }
}

function isEmpty(bin: { sums: Float64Array } | undefined): boolean {
  return bin?.sums[LINES] === 0
}

/** The limits of the servers where these tell their own, else the one of the run. */
function pacedOf({ endpoints, limit, reason }: Record<string, unknown>): Paced[] {
  const told = Array.isArray(endpoints) ? (endpoints as unknown[]).filter(isPaced) : []
  if (told.length > 0) return told
  return typeof limit === 'number' && typeof reason === 'string' ? [{ limit, reason }] : []
}

function isPaced(endpoint: unknown): endpoint is Paced {
  const { url, limit, reason } = (endpoint ?? {}) as Record<string, unknown>
  return [url, reason].every((text) => typeof text === 'string') && typeof limit === 'number'
}
