import type { CacheOutlook } from './pace-cache.ts'

/** Beyond this share the KV cache, and not the slots, is what limits the server. */
const PRESSED = 0.8
/** No growth beyond this share. */
const FULL = 0.92
/** Where a ramp ends by the cache, it goes on filling for so long (ms) without any growth. */
const FILLS_FOR = 120_000
/** So many times the root of what is open may wait at a full cache: the noise of lengths. */
const SLACK = 0.75
/** A cache that was too small once is so for a while (ms). */
const PRESSED_FOR = 7_200_000

/** Whether the KV cache is what limits the server, and what follows from that. */
export class CachePressure {
  #cache: CacheOutlook
  #until = 0
  #fillsUntil = 0

  constructor(cache: CacheOutlook) {
    this.#cache = cache
  }

  /** Whether it limits the server now. */
  isOn(now: number): boolean {
    return now < this.#until || this.#cache.soon > PRESSED
  }

  /** Requests that may wait beside the usual ones: until one of the long answers ends. */
  slack(now: number, open: number): number {
    return this.isOn(now) ? SLACK * Math.sqrt(open) : 0
  }

  /** Requests were preempted. */
  preempted(now: number): void {
    this.#until = now + PRESSED_FOR
  }

  /** A queue at a cache that was too small says that it still is. */
  metQueue(now: number): void {
    if (now < this.#until) this.preempted(now)
  }

  /** A ramp has ended, since the cache will be full. */
  endedRamp(now: number): void {
    this.#fillsUntil = now + FILLS_FOR
  }

  /** Whether there is no room for more requests. */
  isFull(now: number): boolean {
    const { soon, later } = this.#cache
    return soon > FULL || (now < this.#fillsUntil && later > FULL)
  }

  forget(): void {
    this.#until = 0
  }
}
