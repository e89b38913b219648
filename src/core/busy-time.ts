/** Nothing open for longer (ms) is no part of a run: it was stopped, and went on later. */
export const PAUSE = 60_000
/** Parts at most: memory does not grow with what damaged times say. */
const MOST = 1000

interface Part {
  from: number
  to: number
}

/** When a run was at work: its times put together in parts, between which it paused. */
export class BusyTime {
  #pause = PAUSE
  #parts: Part[] = []

  /** Adds a time (milliseconds since 1970) in which something was open; they may come in any order. */
  add(from: number, to: number): void {
    const parts = this.#parts
    let last = parts.length
    while (last > 0 && parts[last - 1]!.from > to + this.#pause) last--
    let first = last
    while (first > 0 && parts[first - 1]!.to >= from - this.#pause) first--
    const joined = { from, to }
    for (const part of parts.slice(first, last)) {
      joined.from = Math.min(joined.from, part.from)
      joined.to = Math.max(joined.to, part.to)
    }
    parts.splice(first, last - first, joined)
    while (this.#parts.length > MOST) this.#coarsen()
  }

  get parts(): number {
    return this.#parts.length
  }

  /** Undefined before the first. */
  get from(): number | undefined {
    return this.#parts[0]?.from
  }

  /** Milliseconds at work, and between the parts. */
  get busy(): number {
    return this.#parts.reduce((sum, { from, to }) => sum + to - from, 0)
  }

  get paused(): number {
    const first = this.#parts[0]
    return first === undefined ? 0 : this.#parts.at(-1)!.to - first.from - this.busy
  }

  #coarsen(): void {
    this.#pause *= 2
    const old = this.#parts
    this.#parts = []
    for (const { from, to } of old) this.add(from, to)
  }
}
