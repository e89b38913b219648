import { setTimeout as sleep } from 'node:timers/promises'
import { errnoOf } from '../core/tool-error.ts'

/** Tries of what fails with ESTALE, and milliseconds between them. */
const TRIES = 5
const PAUSE = 100

/**
 * Does something by a file's name, again where the handle is stale: an NFS client keeps the handle of
 * a name that another host has replaced, and finds the new one at the next look.
 */
export async function retryStale<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt()
    } catch (error) {
      if (errnoOf(error) !== 'ESTALE' || tries === TRIES) throw error
      await sleep(PAUSE)
    }
  }
}

/** The same without waiting. */
export function retryStaleSync<T>(attempt: () => T): T {
  for (let tries = 1; ; tries++) {
    try {
      return attempt()
    } catch (error) {
      if (errnoOf(error) !== 'ESTALE' || tries === TRIES) throw error
    }
  }
}
