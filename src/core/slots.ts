/**
 * The concurrency limit: so many slots, each with something of its own (a connection). Who waits for
 * a retry or goes on with a conversation comes before who is new.
 */
export class Slots<T> {
  #free: T[] = []
  #make: () => T
  #made = 0
  #limit: number
  #first: ((slot: T | undefined) => void)[] = []
  #waiting: ((slot: T | undefined) => void)[] = []
  #waitingFrom = 0
  #held = new Set<string>()
  #closed = false

  /** @param make makes what a slot owns, when the slot is first needed */
  constructor(limit: number, make: () => T) {
    this.#limit = limit
    this.#make = make
  }

  /** Slots in use. */
  get inUse(): number {
    return this.#made - this.#free.length
  }

  /**
   * Waits for a slot.
   *
   * @param first come before those that are not
   * @returns undefined once the limit is closed: no new requests
   */
  acquire(first: boolean): Promise<T | undefined> {
    if (this.#closed) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      if (first) this.#first.push(resolve)
      else this.#waiting.push(resolve)
      this.#serve()
    })
  }

  release(slot: T): void {
    this.#free.push(slot)
    this.#serve()
  }

  /** Gives no slot out until `resume` with the same reason. */
  hold(reason: string): void {
    this.#held.add(reason)
  }

  resume(reason: string): void {
    this.#held.delete(reason)
    this.#serve()
  }

  /** Gives no slot out any more; those who wait get none. */
  close(): void {
    this.#closed = true
    for (const resolve of [...this.#first, ...this.#waiting.slice(this.#waitingFrom)])
      resolve(undefined)
    this.#first = []
    this.#waiting = []
    this.#waitingFrom = 0
  }

  #serve(): void {
    while (this.#held.size === 0 && (this.#free.length > 0 || this.#made < this.#limit)) {
      const next = this.#first.shift() ?? this.#nextWaiting()
      if (next === undefined) return
      let slot = this.#free.pop()
      if (slot === undefined) {
        this.#made++
        slot = this.#make()
      }
      next(slot)
    }
  }

  /** Takes from the front without moving the rest every time. */
  #nextWaiting(): ((slot: T | undefined) => void) | undefined {
    const next = this.#waiting[this.#waitingFrom]
    if (next === undefined) return undefined
    if (++this.#waitingFrom > 1024) {
      this.#waiting = this.#waiting.slice(this.#waitingFrom)
      this.#waitingFrom = 0
    }
    return next
  }
}
