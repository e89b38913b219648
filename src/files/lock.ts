import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from '../core/clock.ts'
import { errnoOf, ioError, ToolError } from '../core/tool-error.ts'

/** A holder touches its lock this often, in milliseconds. */
const TOUCH_EVERY = 5000
/** A lock of another host is stale when its time stands still so long, in milliseconds. */
const STALE_AFTER = 30_000
const LOOK_EVERY = 1000

interface Holder {
  host: string
  pid: number
  since: string
}

/** The right to be the only writer of a file, as a file beside it: `FILE.lock`. */
export class FileLock {
  readonly path: string
  #stopTouching: () => void
  #release: () => void

  /**
   * Takes the lock of `file`. A lock whose process on this host is dead is taken over at once, one
   * of another host after watching its time stand still for 30 s.
   *
   * @param onWatch told when that watching begins
   * @throws ToolError `locked`, naming the holder
   */
  static async take(
    file: string,
    clock: Clock,
    onWatch: (holder: string) => void,
  ): Promise<FileLock> {
    const path = `${file}.lock`
    for (;;) {
      if (create(path)) return new FileLock(path, clock)
      const holder = read(path)
      if (holder === undefined) continue
      if (holder.host === hostname()) {
        if (isAlive(holder.pid)) throw locked(file, holder)
      } else {
        onWatch(describe(holder))
        if (await moves(path, clock)) throw locked(file, holder)
      }
      remove(path, holder)
    }
  }

  constructor(path: string, clock: Clock) {
    this.path = path
    this.#stopTouching = clock.every(TOUCH_EVERY, () => touch(path))
    this.#release = () => rmSync(path, { force: true })
    process.once('exit', this.#release)
  }

  release(): void {
    this.#stopTouching()
    process.off('exit', this.#release)
    this.#release()
  }
}

function create(path: string): boolean {
  const holder: Holder = { host: hostname(), pid: process.pid, since: new Date().toISOString() }
  try {
    writeFileSync(path, `${JSON.stringify(holder)}\n`, { flag: 'wx' })
    return true
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw ioError(error, path, 'write')
  }
}

/** The holder that a lock names; undefined where the lock has just gone. */
function read(path: string): Holder | undefined {
  try {
    const { host, pid, since } = JSON.parse(readFileSync(path, 'utf8')) as Holder
    return { host: String(host), pid: Number(pid), since: String(since) }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    // Half a lock: its writer died, or writes it at this moment. Watched like a foreign one.
    return { host: '(unreadable)', pid: 0, since: '' }
  }
}

/** Removes a stale lock, unless somebody else has taken it over since. */
function remove(path: string, holder: Holder): void {
  const now = read(path)
  if (now === undefined || now.host !== holder.host || now.pid !== holder.pid) return
  try {
    rmSync(path, { force: true })
  } catch (error) {
    throw ioError(error, path, 'remove the stale lock')
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errnoOf(error) === 'EPERM'
  }
}

async function moves(path: string, clock: Clock): Promise<boolean> {
  const before = modified(path)
  for (let waited = 0; waited < STALE_AFTER; waited += LOOK_EVERY) {
    await new Promise<void>((resolve) => void clock.after(LOOK_EVERY, resolve))
    if (modified(path) !== before) return true
  }
  return false
}

/** Opened, not only looked up: that makes NFS ask its server instead of its cache. */
function modified(path: string): number {
  try {
    const fd = openSync(path, 'r')
    try {
      return fstatSync(fd).mtimeMs
    } finally {
      closeSync(fd)
    }
  } catch {
    return 0
  }
}

function touch(path: string): void {
  const now = new Date()
  try {
    utimesSync(path, now, now)
  } catch {
    // The next touch may succeed; a lock that stands still is only stale after six of them.
  }
}

function locked(file: string, holder: Holder): ToolError {
  const message = `another run writes this file: ${describe(holder)}; if it is gone for sure, remove ${file}.lock`
  return new ToolError('locked', message, { place: { file } })
}

function describe({ host, pid, since }: Holder): string {
  return `process ${pid} on ${host}, since ${since}`
}
