/** A year: no server holds a request longer, and 120 bins of it are three days each still. */
const LONGEST_MS = 366 * 86_400_000
/** A million million: tokens of one answer are a millionth of it, and sums of them stay whole. */
const MOST = 1e12
const DATES = { from: Date.UTC(2000, 0, 1), to: Date.UTC(2100, 0, 1) }
const DATE = /^\d{4}-\d\d-\d\d[T ]/

/**
 * A value that no run can have: it would drown the figures of all others, as a total of 1e308 ms or
 * a first answer in 1970 did.
 */
export class ImpossibleValue extends Error {
  /** Where in the bytes the object begins that has it. */
  readonly at: number

  constructor(message: string, at: number) {
    super(message)
    this.name = 'ImpossibleValue'
    this.at = at
  }
}

/** Members of an object in a record, each within what can be true; null is as good as none. */
export class ToldValues {
  readonly #values: Readonly<Record<string, unknown>>
  readonly #at: number

  /** @param at where in the bytes the object begins */
  constructor(values: Readonly<Record<string, unknown>> | undefined, at: number) {
    this.#values = values ?? {}
    this.#at = at
  }

  /**
   * @param whole what it is a part of
   * @throws ImpossibleValue
   */
  duration(name: string, whole?: number): number | undefined {
    const value = this.#number(name, LONGEST_MS, 'no duration: 0 to a year, in milliseconds')
    if (value === undefined || whole === undefined || value <= whole) return value
    throw this.#impossible(name, 'more than the whole took')
  }

  /** @throws ImpossibleValue */
  count(name: string): number | undefined {
    return this.#number(name, MOST, 'no count: a number from 0 to 1e12')
  }

  /**
   * Milliseconds since 1970.
   *
   * @throws ImpossibleValue
   */
  date(name: string): number | undefined {
    const value = this.#values[name] ?? undefined
    if (value === undefined) return undefined
    const date = typeof value === 'string' && DATE.test(value) ? Date.parse(value) : Number.NaN
    if (date >= DATES.from && date < DATES.to) return date
    throw this.#impossible(name, 'no date: ISO 8601, from 2000 to 2100')
  }

  #number(name: string, most: number, problem: string): number | undefined {
    const value = this.#values[name] ?? undefined
    if (value === undefined) return undefined
    if (typeof value === 'number' && value >= 0 && value <= most) return value
    throw this.#impossible(name, problem)
  }

  #impossible(name: string, problem: string): ImpossibleValue {
    return new ImpossibleValue(`'${name}' is ${problem}`, this.#at)
  }
}

/**
 * All numbers in a value, at any depth, as counts.
 *
 * @throws ImpossibleValue
 */
export function checkCounts(value: unknown, at: number): void {
  if (typeof value !== 'object' || value === null) return
  const told = new ToldValues(value as Record<string, unknown>, at)
  for (const [name, inner] of Object.entries(value)) {
    if (typeof inner === 'number') told.count(name)
    else checkCounts(inner, at)
  }
}
