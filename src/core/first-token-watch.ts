import { FirstTokenFloor } from './pace-floor.ts'

/** First tokens of which the present time is the median. */
const RECENT = 15

/** What first tokens take at one server: now, and at its best. */
export class FirstTokenWatch {
  #floor = new FirstTokenFloor()
  #times: number[] = []

  add(ms: number, now: number): void {
    this.#floor.advance(now)
    this.#floor.add(ms)
    this.#times.push(ms)
    if (this.#times.length > RECENT) this.#times.shift()
  }

  /** The median of the last ones, in milliseconds; undefined before the first. */
  get present(): number | undefined {
    return this.#times.toSorted((a, b) => a - b)[Math.floor(this.#times.length / 2)]
  }

  /** The least that a few took lately; undefined before the first few. */
  get floor(): number | undefined {
    return Number.isFinite(this.#floor.value) ? this.#floor.value : undefined
  }
}
