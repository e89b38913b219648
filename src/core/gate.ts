type Waiter<T> = (got: T | undefined) => void

/**
 * Hands out something scarce, such as the right to have a request open, to those who wait for it.
 * Who retries or goes on with a conversation comes before who is new.
 */
export class Gate<T> {
  #take: () => T | undefined
  #onServed: () => void
  #first: Waiter<T>[] = []
  #others: Waiter<T>[] = []
  /** Those before it are served: taking from the front of an array would move the rest each time. */
  #othersFrom = 0
  #held = new Set<string>()
  #closed = false

  /**
   * @param take takes one, or gives undefined while there is none
   * @param onServed told that one fewer waits
   */
  constructor(take: () => T | undefined, onServed: () => void = () => {}) {
    this.#take = take
    this.#onServed = onServed
  }

  /** How many wait. */
  get waiting(): number {
    return this.#first.length + this.#others.length - this.#othersFrom
  }

  /**
   * Waits for one.
   *
   * @param first come before those that are not
   * @returns undefined once the gate is closed
   */
  acquire(first: boolean): Promise<T | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      if (first) this.#first.push(resolve)
      else this.#others.push(resolve)
      this.serve()
    })
  }

  /** Serves those who wait; to be called when there may be some again. */
  serve(): void {
    while (this.#held.size === 0 && this.waiting > 0) {
      const got = this.#take()
      if (got === undefined) return
      this.#next()(got)
      this.#onServed()
    }
  }

  /** Hands nothing out until `resume` with the same reason. */
  hold(reason: string): void {
    this.#held.add(reason)
  }

  resume(reason: string): void {
    this.#held.delete(reason)
    this.serve()
  }

  /** Hands nothing out any more; those who wait get undefined. */
  close(): void {
    this.#closed = true
    while (this.waiting > 0) this.#next()(undefined)
  }

  #next(): Waiter<T> {
    const first = this.#first.shift()
    if (first !== undefined) return first
    const next = this.#others[this.#othersFrom++]!
    if (this.#othersFrom > 1024) {
      this.#others = this.#others.slice(this.#othersFrom)
      this.#othersFrom = 0
    }
    return next
  }
}
