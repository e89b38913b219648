import { closeSync, fstatSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'
import { formatDuration } from '../core/quantity.ts'
import { errnoOf } from '../core/tool-error.ts'

/** What a lock says whose text is no holder: half written, or not ours at all. */
const UNREADABLE = '(unreadable)'

/** Who holds a lock, as the lock says it. */
export interface Holder {
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

/** The holder that a lock names; undefined where the lock has just gone. */
export function readHolder(path: string): Holder | undefined {
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

/** Whether two are the same run's. */
export function isSameHolder(a: Holder, b: Holder): boolean {
  return a.host === b.host && a.pid === b.pid && a.since === b.since && a.token === b.token
}

/**
 * Whether the holder's process number can be looked up here. A container that is started again may
 * have the host name of the one before, and the numbers of its processes.
 */
export function isOfThisSystem({ host, space }: Holder): boolean {
  return host === hostname() && (space === '' || space === processSpace())
}

/** The boot and the PID namespace; empty where the system does not tell. */
export function processSpace(): string {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    return `${boot} ${readlinkSync('/proc/self/ns/pid')}`
  } catch {
    return ''
  }
}

/** When a lock was touched last, in milliseconds. Opened, not only looked up: that makes NFS ask its server instead of its cache. */
export function modified(path: string): number {
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

/** A holder for messages. */
export function describeHolder({ host, pid, since }: Holder): string {
  if (host === UNREADABLE) {
    const age = formatDuration(Math.max(0, Date.now() - Date.parse(since)))
    return `an unknown process (its lock is empty or damaged, touched ${age} ago)`
  }
  return `process ${pid} on ${host}, since ${since}`
}

/** Whether its lock says who it is. */
export function isReadable({ host }: Holder): boolean {
  return host !== UNREADABLE
}
