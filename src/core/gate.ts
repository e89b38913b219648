type Waiter<T> = (got: T | undefined) => void

/**
 * Who waits: `new` ones come last; who tries again comes before them, and so does who goes on with
 * what was paid for already, which is served to its end even where nothing new is to begin.
 */
export type Turn = 'new' | 'again' | 'going-on'

/**
 * Hands out something scarce, such as the right to have a request open, to those who wait for it.
 */
export class Gate<T> {
  #take: () => T | undefined
  #onServed: () => void
  #first: { turn: Turn; waiter: Waiter<T> }[] = []
  #others: Waiter<T>[] = []
  /** Those before it are served: taking from the front of an array would move the rest each time. */
  #othersFrom = 0
  #held = new Set<string>()
  #state: 'open' | 'ending' | 'closed' = 'open'

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

  /** How many of them go on with what was paid for. */
  get goingOn(): number {
    return this.#first.filter(({ turn }) => turn === 'going-on').length
  }

  /**
   * Waits for one.
   *
   * @returns undefined where none is given any more
   */
  acquire(turn: Turn): Promise<T | undefined> {
    if (this.#state === 'closed' || (this.#state === 'ending' && turn !== 'going-on')) {
      return Promise.resolve(undefined)
    }
    return new Promise((waiter) => {
      if (turn === 'new') this.#others.push(waiter)
      else this.#first.push({ turn, waiter })
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

  /** Hands nothing out any more but to what goes on; the others get undefined. */
  end(): void {
    if (this.#state === 'open') this.#state = 'ending'
    const goingOn = this.#first.filter(({ turn }) => turn === 'going-on')
    const dropped = this.#first.filter(({ turn }) => turn !== 'going-on').map((one) => one.waiter)
    dropped.push(...this.#others.slice(this.#othersFrom))
    this.#first = goingOn
    this.#others = []
    this.#othersFrom = 0
    for (const waiter of dropped) waiter(undefined)
  }

  /** Hands nothing out any more; those who wait get undefined. */
  close(): void {
    this.#state = 'closed'
    while (this.waiting > 0) this.#next()(undefined)
  }

  #next(): Waiter<T> {
    const first = this.#first.shift()
    if (first !== undefined) return first.waiter
    const next = this.#others[this.#othersFrom++]!
    if (this.#othersFrom > 1024) {
      this.#others = this.#others.slice(this.#othersFrom)
      this.#othersFrom = 0
    }
    return next
  }
}
