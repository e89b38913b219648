import { randomBytes } from 'node:crypto'
import {
  closeSync,
  linkSync,
  lstatSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from '../core/clock.ts'
import { errnoOf, Interrupted, ioError, ToolError } from '../core/tool-error.ts'
import {
  describeHolder,
  type Holder,
  isOfThisSystem,
  isReadable,
  isSameHolder,
  modified,
  processSpace,
  readHolder,
} from './lock-holder.ts'
import { placeOf } from './place.ts'
import { isAlive } from './process-alive.ts'

/** A holder touches its lock this often, in milliseconds. */
const TOUCH_EVERY = 5000
/** A lock of another host is stale when its time stands still so long, in milliseconds. */
const STALE_AFTER = 30_000
const LOOK_EVERY = 1000

/** How a lock is taken that somebody else seems to hold. */
export interface LockOptions {
  /** Locks are touched and watched by it. */
  clock: Clock
  /** Told when the watching of a lock begins. */
  onWatch: (holder: string) => void
  /** Asked each second of the watching: whether a signal ends it. */
  interrupted?: () => boolean
  /** The scheduler says that the holder on another host is gone: take its lock without watching. */
  takeOver?: boolean
}

/**
 * The right to be the only writer of a file, as a file beside it: `FILE.lock`, of a symbolic link
 * beside what it leads to, so that all names of a file have one lock.
 */
export class FileLock {
  readonly path: string
  /** Told when another run has taken the lock: this one must not write any more. */
  onLost: (error: ToolError) => void = () => {}
  #file: string
  #own: Holder
  #stopTouching: () => void
  #release: () => void

  /**
   * Takes the lock of `file`. A lock whose process on this host is dead is taken over at once, one
   * of another host after watching its time stand still for 30 s, or at once with `takeOver`. A
   * living process of this host is never robbed.
   *
   * It relies on the exclusive creation of a file and on rename alone, which NFS, Lustre and FUSE
   * mounts give; flock they may not.
   *
   * @throws ToolError `locked`, naming the holder or what else has the lock's name; Interrupted where a signal ended the watching
   */
  static async take(
    file: string,
    { clock, onWatch, interrupted = () => false, takeOver = false }: LockOptions,
  ): Promise<FileLock> {
    const path = lockOf(file)
    const own: Holder = {
      host: hostname(),
      pid: process.pid,
      since: new Date().toISOString(),
      space: processSpace(),
      token: randomBytes(8).toString('hex'),
    }
    for (;;) {
      if (create(path, own)) return new FileLock(file, path, own, clock)
      refuseOther(path, file)
      const holder = readHolder(path)
      if (holder === undefined) continue
      // NFS sends a lost request again: what it then finds is the file that it has created.
      if (isSameHolder(holder, own)) return new FileLock(file, path, own, clock)
      if (isOfThisSystem(holder)) {
        if (isAlive(holder.pid)) throw locked(file, holder)
      } else if (!takeOver || !isReadable(holder)) {
        onWatch(describeHolder(holder))
        if (await moves(path, clock, interrupted)) throw locked(file, readHolder(path) ?? holder)
      }
      remove(path, holder)
    }
  }

  private constructor(file: string, path: string, own: Holder, clock: Clock) {
    this.path = path
    this.#file = file
    this.#own = own
    this.#stopTouching = clock.every(TOUCH_EVERY, () => this.#touch())
    this.#release = () => {
      const holder = readHolder(this.path)
      if (holder !== undefined && isSameHolder(holder, own)) rmSync(this.path, { force: true })
    }
    process.once('exit', this.#release)
  }

  release(): void {
    this.#stopTouching()
    process.off('exit', this.#release)
    this.#release()
  }

  #touch(): void {
    const holder = readHolder(this.path)
    if (holder === undefined) {
      // Somebody has removed it, as the message of a second run says one can.
      if (recreate(this.path, this.#own)) return
    } else if (isSameHolder(holder, this.#own) || !isReadable(holder)) {
      touch(this.path)
      return
    }
    this.#stopTouching()
    this.onLost(lost(this.#file, readHolder(this.path)))
  }
}

function lockOf(file: string): string {
  return `${isLink(file) ? placeOf(file) : file}.lock`
}

function isLink(file: string): boolean {
  try {
    return lstatSync(file).isSymbolicLink()
  } catch {
    return false
  }
}

function create(path: string, own: Holder): boolean {
  let fd: number
  try {
    fd = openSync(path, 'wx')
  } catch (error) {
    if (errnoOf(error) === 'EEXIST') return false
    throw ioError(error, path, 'write')
  }
  try {
    writeFileSync(fd, `${JSON.stringify(own)}\n`)
    return true
  } catch (error) {
    // A full disk takes the name and not the text: an empty lock would be in the way of the next run.
    rmSync(path, { force: true })
    throw ioError(error, path, 'write')
  } finally {
    closeSync(fd)
  }
}

/** Only a file is a lock, and a link to one. */
function refuseOther(path: string, file: string): void {
  const own = lstatSync(path, { throwIfNoEntry: false })
  if (own === undefined || own.isFile() || statSync(path, { throwIfNoEntry: false })?.isFile())
    return
  const what = own.isDirectory() ? 'a directory' : 'no file'
  const message = `${path} is ${what}, so that this file cannot be locked: remove it`
  throw new ToolError('locked', message, { place: { file } })
}

/** Creates the lock again; an error that may pass is none yet, the next touch tries again. */
function recreate(path: string, own: Holder): boolean {
  try {
    return create(path, own)
  } catch {
    return true
  }
}

/**
 * Removes a stale lock. It is taken aside first: of two runs that found it stale, one gets it, and
 * the other one does not remove the lock that the first has made since.
 */
function remove(path: string, holder: Holder): void {
  const aside = `${path}.${hostname()}.${process.pid}.stale`
  try {
    renameSync(path, aside)
    const taken = readHolder(aside)
    if (taken !== undefined && !isSameHolder(taken, holder)) giveBack(aside, path)
    rmSync(aside, { force: true })
  } catch (error) {
    if (errnoOf(error) !== 'ENOENT') throw ioError(error, path, 'remove the stale lock')
  }
}

function giveBack(aside: string, path: string): void {
  try {
    linkSync(aside, path)
  } catch (error) {
    // No links on this file system.
    if (errnoOf(error) !== 'EEXIST') renameSync(aside, path)
  }
}

async function moves(path: string, clock: Clock, interrupted: () => boolean): Promise<boolean> {
  const before = modified(path)
  for (let waited = 0; waited < STALE_AFTER; waited += LOOK_EVERY) {
    await new Promise<void>((resolve) => void clock.after(LOOK_EVERY, resolve))
    if (interrupted()) throw new Interrupted()
    if (modified(path) !== before) return true
  }
  return false
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
  const message =
    `another run writes this file: ${describeHolder(holder)}; if it is gone for sure, remove ` +
    `${lockOf(file)} (fanout-complete --take-lock takes another host's)`
  return new ToolError('locked', message, { place: { file } })
}

function lost(file: string, holder: Holder | undefined): ToolError {
  const by = holder === undefined ? 'another run' : describeHolder(holder)
  const message = `${by} has taken this file over: what was in flight is given up here`
  return new ToolError('lock-lost', message, { place: { file } })
}
