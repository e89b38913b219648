import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fstatSync,
  linkSync,
  lstatSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import type { Clock } from '../core/clock.ts'
import { formatDuration } from '../core/quantity.ts'
import { errnoOf, Interrupted, ioError, ToolError } from '../core/tool-error.ts'
import { isAlive } from './process-alive.ts'

/** A holder touches its lock this often, in milliseconds. */
const TOUCH_EVERY = 5000
/** A lock of another host is stale when its time stands still so long, in milliseconds. */
const STALE_AFTER = 30_000
const LOOK_EVERY = 1000

/** What a lock says whose text is no holder: half written, or not ours at all. */
const UNREADABLE = '(unreadable)'

interface Holder {
  host: string
  pid: number
  since: string
  /** Tells processes of one number apart: the boot and the PID namespace, where the system has them. */
  space: string
  /** Tells this lock from any other. */
  token: string
}

/**
 * Half a lock: its writer died (its disk was full), or writes it at this moment. Watched like a
 * foreign one. `since` is when it was touched last.
 */
function nobody(path: string): Holder {
  const since = new Date(modified(path)).toISOString()
  return { host: UNREADABLE, pid: 0, since, space: '', token: '' }
}

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

/** The right to be the only writer of a file, as a file beside it: `FILE.lock`. */
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
    const path = `${file}.lock`
    const own: Holder = {
      host: hostname(),
      pid: process.pid,
      since: new Date().toISOString(),
      space: processSpace(),
      token: randomBytes(8).toString('hex'),
    }
    for (;;) {
      if (create(path, own)) return new FileLock(file, own, clock)
      refuseOther(path, file)
      const holder = read(path)
      if (holder === undefined) continue
      // NFS sends a lost request again: what it then finds is the file that it has created.
      if (isSame(holder, own)) return new FileLock(file, own, clock)
      if (isOfThisSystem(holder)) {
        if (isAlive(holder.pid)) throw locked(file, holder)
      } else if (!takeOver || holder.host === UNREADABLE) {
        onWatch(describe(holder))
        if (await moves(path, clock, interrupted)) throw locked(file, read(path) ?? holder)
      }
      remove(path, holder)
    }
  }

  private constructor(file: string, own: Holder, clock: Clock) {
    this.path = `${file}.lock`
    this.#file = file
    this.#own = own
    this.#stopTouching = clock.every(TOUCH_EVERY, () => this.#touch())
    this.#release = () => {
      const holder = read(this.path)
      if (holder !== undefined && isSame(holder, own)) rmSync(this.path, { force: true })
    }
    process.once('exit', this.#release)
  }

  release(): void {
    this.#stopTouching()
    process.off('exit', this.#release)
    this.#release()
  }

  #touch(): void {
    const holder = read(this.path)
    if (holder === undefined) {
      // Somebody has removed it, as the message of a second run says one can.
      if (recreate(this.path, this.#own)) return
    } else if (isSame(holder, this.#own) || holder.host === UNREADABLE) {
      touch(this.path)
      return
    }
    this.#stopTouching()
    this.onLost(lost(this.#file, read(this.path)))
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

/** The holder that a lock names; undefined where the lock has just gone. */
function read(path: string): Holder | undefined {
  try {
    const holder = JSON.parse(readFileSync(path, 'utf8')) as Partial<Holder>
    if (typeof holder.host !== 'string' || !isProcessNumber(holder.pid)) return nobody(path)
    return {
      host: holder.host,
      pid: holder.pid,
      since: String(holder.since),
      space: String(holder.space ?? ''),
      token: String(holder.token ?? ''),
    }
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return undefined
    return nobody(path)
  }
}

/** 0 would be our own group of processes. */
function isProcessNumber(pid: unknown): pid is number {
  return Number.isSafeInteger(pid) && (pid as number) > 0
}

/**
 * Removes a stale lock. It is taken aside first: of two runs that found it stale, one gets it, and
 * the other one does not remove the lock that the first has made since.
 */
function remove(path: string, holder: Holder): void {
  const aside = `${path}.${hostname()}.${process.pid}.stale`
  try {
    renameSync(path, aside)
    const taken = read(aside)
    if (taken !== undefined && !isSame(taken, holder)) giveBack(aside, path)
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

function isSame(a: Holder, b: Holder): boolean {
  return a.host === b.host && a.pid === b.pid && a.since === b.since && a.token === b.token
}

/**
 * Whether the holder's process number can be looked up here. A container that is started again may
 * have the host name of the one before, and the numbers of its processes.
 */
function isOfThisSystem({ host, space }: Holder): boolean {
  return host === hostname() && (space === '' || space === processSpace())
}

function processSpace(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
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
  const message =
    `another run writes this file: ${describe(holder)}; if it is gone for sure, remove ` +
    `${file}.lock (fanout-complete --take-lock takes another host's)`
  return new ToolError('locked', message, { place: { file } })
}

function lost(file: string, holder: Holder | undefined): ToolError {
  const by = holder === undefined ? 'another run' : describe(holder)
  const message = `${by} has taken this file over: what was in flight is given up here`
  return new ToolError('lock-lost', message, { place: { file } })
}

function describe({ host, pid, since }: Holder): string {
  if (host === UNREADABLE) {
    const age = formatDuration(Math.max(0, Date.now() - Date.parse(since)))
    return `an unknown process (its lock is empty or damaged, touched ${age} ago)`
  }
  return `process ${pid} on ${host}, since ${since}`
}
