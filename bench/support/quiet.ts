import { cpus } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'

const LOOK_FOR = 100
/** The share of all cores that may be busy in a quiet moment. */
const QUIET = 0.1

/** Waits for moments in which nothing else runs, and counts those in which something did. */
export class Quiet {
  /** Runs that began although the machine was busy. */
  disturbed = 0
  #patience: number

  /** @param patience milliseconds to wait at most */
  constructor(patience: number) {
    this.#patience = patience
  }

  /** Resolves when the machine was idle for a moment, or patience is at its end. */
  async moment(): Promise<void> {
    const until = performance.now() + this.#patience
    for (;;) {
      const before = times()
      await pause(LOOK_FOR)
      const after = times()
      if (1 - (after.idle - before.idle) / (after.all - before.all) < QUIET) return
      if (performance.now() >= until) break
    }
    this.disturbed++
  }
}

function times(): { idle: number; all: number } {
  let idle = 0
  let all = 0
  for (const { times } of cpus()) {
    idle += times.idle
    all += times.user + times.nice + times.sys + times.irq + times.idle
  }
  return { idle, all }
}
