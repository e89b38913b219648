import { constants, open, stat } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { errnoOf, Interrupted } from '../core/tool-error.ts'

const openFd = promisify(open)
const statPath = promisify(stat)

/** Milliseconds between two looks whether a FIFO has a reader. */
const LOOK_EVERY = 50

/**
 * Opens a FIFO to write to it, once it has a reader. A thread that waits for one in open(2) cannot be
 * told of a signal, and keeps the process from ending.
 *
 * @param interrupted aborted where nobody waits any longer
 * @returns undefined where the file is no FIFO
 * @throws Interrupted where a signal comes before a reader does
 */
export async function openPipe(
  file: string,
  interrupted: AbortSignal,
): Promise<number | undefined> {
  const found = await statPath(file).catch(() => undefined)
  if (found?.isFIFO() !== true) return undefined
  for (;;) {
    try {
      return await openFd(file, constants.O_WRONLY | constants.O_NONBLOCK)
    } catch (error) {
      if (errnoOf(error) !== 'ENXIO') throw error
      if (interrupted.aborted) throw new Interrupted()
      await sleep(LOOK_EVERY, undefined, { signal: interrupted }).catch(() => {})
    }
  }
}
