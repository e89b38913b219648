/**
 * Time as a run sees it: every duration in milliseconds of server time. A clock that runs K times
 * faster than the wall (`--clock-speed K`) divides what it waits by K and multiplies what it tells.
 */
export interface Clock {
  /** Milliseconds that never go back, from an arbitrary zero. */
  now(): number
  /** The date that belongs to `now()`, in milliseconds since 1970. */
  date(): number
  /** Calls back after `ms`; the returned function cancels it. */
  after(ms: number, callback: () => void): () => void
  /** Calls back every `ms`; the returned function ends it. Does not keep the process alive. */
  every(ms: number, callback: () => void): () => void
}
