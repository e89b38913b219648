/** So many later ones overtake a request that waits behind others of a few servers' queues. */
const FEWEST = 16

/** A request that is open and has no first token. */
export interface Start {
  /** Later ones that have had their first token. */
  overtaken: number
}

/**
 * The requests that wait for their first token, in the order in which they were sent. A queue is
 * served in order: one that as many later ones have overtaken as are open at a time, a generation of
 * them, waits in no queue. It hangs, and would be taken for a queue as long as it does.
 */
export class StartOrder {
  #waiting = new Set<Start>()

  get size(): number {
    return this.#waiting.size
  }

  /** A request is sent. */
  sent(): Start {
    const start = { overtaken: 0 }
    this.#waiting.add(start)
    return start
  }

  /** It has its first token. */
  started(start: Start): void {
    for (const other of this.#waiting) {
      if (other === start) break
      other.overtaken++
    }
    this.#waiting.delete(start)
  }

  /** It has ended, with or without one. */
  ended(start: Start): void {
    this.#waiting.delete(start)
  }

  /** How many hang, where so many are open. */
  hung(open: number): number {
    let hung = 0
    for (const start of this.#waiting) if (hangs(start, open)) hung++
    return hung
  }
}

/** Whether a request hangs. @param open how many are open */
export function hangs({ overtaken }: Start, open: number): boolean {
  return overtaken >= Math.max(FEWEST, open / 4)
}
