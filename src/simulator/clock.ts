/** The server's clock: milliseconds since it started, running `speed` times faster than the wall. */
export interface Clock {
  now(): number
  /** How long a stretch of server time takes on the wall, in milliseconds. */
  toWall(serverMs: number): number
}

export function startClock(speed: number, wallNow: () => number = () => performance.now()): Clock {
  const startedAt = wallNow()
  return {
    now: () => (wallNow() - startedAt) * speed,
    toWall: (serverMs) => serverMs / speed,
  }
}
