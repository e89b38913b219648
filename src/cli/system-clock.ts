import type { Clock } from '../core/clock.ts'

/** setTimeout takes no more; longer waits are made of several. */
const LONGEST_TIMER = 2 ** 31 - 1

/** The machine's clock, running `speed` times faster than the wall. */
export function systemClock(speed = 1): Clock {
  const startDate = Date.now()
  const start = performance.now()
  const now = (): number => (performance.now() - start) * speed
  return {
    now,
    date: () => startDate + now(),
    after(ms, callback) {
      const timer = setTimeout(callback, Math.min(ms / speed, LONGEST_TIMER))
      return () => clearTimeout(timer)
    },
    every(ms, callback) {
      const timer = setInterval(callback, Math.min(Math.max(1, ms / speed), LONGEST_TIMER))
      timer.unref()
      return () => clearInterval(timer)
    },
  }
}
