import { readFileSync } from 'node:fs'
import { errnoOf } from '../core/tool-error.ts'

/**
 * Whether a process of this machine, and of this PID namespace, still runs. One that has ended and
 * whose parent has not asked after it (a zombie) keeps its number and can do nothing any more.
 */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return !isZombie(pid)
  } catch (error) {
    return errnoOf(error) === 'EPERM'
  }
}

/** The state stands behind the name, which may hold any character, in /proc/PID/stat (proc(5)). */
function isZombie(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return /^\) [ZX]/.test(stat.slice(stat.lastIndexOf(')')))
  } catch {
    // No /proc, or the process has gone meanwhile: what kill said holds.
    return false
  }
}
