import { fdatasync, write as writeFd } from 'node:fs'
import { promisify } from 'node:util'
import type { Clock } from '../core/clock.ts'
import { ClosedPipe, errnoOf, ioError } from '../core/tool-error.ts'
import type { UnsyncedBytes } from './unsynced-bytes.ts'

const syncFd = promisify(fdatasync)

/** Lines that wait are written together, up to about this many characters a write. */
const BATCH = 1024 * 1024
/** Bytes that are kept in case a sync fails: so many are synced before their time. */
const MOST_UNSYNCED = 16 * 1024 * 1024
/** Milliseconds between two tries on a full disk. */
const RETRY_EVERY = 1000
const EAGAIN_PAUSE = 5
/** Milliseconds for which lines are gathered. */
const GATHER = 2
/** Errors of a regular file that pass: somebody makes room, the server of the mount comes back. */
const PASSING = new Set(['ENOSPC', 'EDQUOT', 'EIO', 'ESTALE'])

export interface LineWriterOptions {
  clock: Clock
  /** A regular file: a full disk is waited out, and what is written is synced. */
  regular: boolean
  /** What a sync that fails may lose, of a file that only we append to. */
  unsynced?: UnsyncedBytes | undefined
  /** Opens the file again where the server of its mount no longer knows the handle (ESTALE). */
  reopen?: () => number
  /** Empties the file, before the first line. */
  empty?: () => void
  /** Milliseconds between syncs. */
  syncEvery: number
  /** Told when the file cannot be written, with the reason, and with undefined when it can again. */
  onBlocked: (reason: string | undefined) => void
}

/** Lines that are written together, and the promise of all who wait for one of them. */
class Batch {
  lines: string[] = []
  length = 0
  readonly since: number
  readonly written: Promise<void>
  resolve!: () => void
  reject!: (error: unknown) => void

  constructor(since: number) {
    this.since = since
    this.written = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }
}

/** Appends whole lines to a file or a pipe; what comes while a write is under way goes together. */
export class LineWriter {
  #fd: number
  #name: string
  #options: LineWriterOptions
  #waiting: Batch[] = []
  #running: Promise<void> | undefined
  #failure: unknown
  #dirty = false
  #abandoned = false
  /** When the line that is being written came. */
  #oldest: number | undefined
  /** What the file does not take at the moment, as was told. */
  #blocked = new Set<'write' | 'sync'>()
  #stopSync: (() => void) | undefined
  #syncing: Promise<void> | undefined
  #syncFailure: unknown
  #unsynced: UnsyncedBytes | undefined
  #nextSync: NodeJS.Timeout | undefined
  #empty: (() => void) | undefined
  #closing = false

  constructor(fd: number, name: string, options: LineWriterOptions) {
    this.#fd = fd
    this.#name = name
    this.#options = options
    this.#unsynced = options.unsynced
    this.#empty = options.empty
    if (options.regular && options.syncEvery > 0) {
      this.#stopSync = options.clock.every(options.syncEvery, () => this.#syncNow())
    }
  }

  /** Milliseconds for which the oldest line has waited, for no reason that was told. */
  get waited(): number {
    if (this.#oldest === undefined || this.#blocked.size > 0) return 0
    return this.#options.clock.now() - this.#oldest
  }

  /**
   * Writes a line, its newline included.
   *
   * @returns when it is written
   * @throws ClosedPipe where the reader has gone, ToolError for other errors that do not pass
   */
  write(line: string): Promise<void> {
    if (this.#failure !== undefined) return Promise.reject(this.#failure)
    let batch = this.#waiting.at(-1)
    if (batch === undefined || batch.length + line.length > BATCH) {
      batch = new Batch(this.#options.clock.now())
      this.#waiting.push(batch)
      this.#running ??= this.#run()
    }
    batch.lines.push(line)
    batch.length += line.length
    return batch.written
  }

  /**
   * Empties a file that is to be written anew, as the first line does.
   *
   * @throws ToolError
   */
  begin(): void {
    const empty = this.#empty
    this.#empty = undefined
    empty?.()
  }

  /** Gives up waiting for room on the disk: what waits is rejected. */
  abandon(): void {
    this.#abandoned = true
  }

  /**
   * Waits until all is written and synced.
   *
   * @throws ToolError where it cannot be synced for good
   */
  async close(): Promise<void> {
    this.#closing = true
    this.#stopSync?.()
    clearTimeout(this.#nextSync)
    await this.#running
    await this.#syncing
    if (this.#syncFailure !== undefined) throw this.#syncFailure
    await this.#sync()
    while (this.#dirty && this.#options.regular) {
      await pause(RETRY_EVERY)
      await this.#sync()
    }
  }

  async #run(): Promise<void> {
    // Lines that are ready at about the same time go into one write: it costs as much as ten of them.
    await pause(GATHER)
    for (let batch = this.#waiting.shift(); batch !== undefined; batch = this.#waiting.shift()) {
      this.#oldest = batch.since
      try {
        this.begin()
        await this.#writeAll(Buffer.from(batch.lines.join('')))
        this.#dirty = true
        if ((this.#unsynced?.length ?? 0) > MOST_UNSYNCED) this.#syncNow()
        batch.resolve()
      } catch (error) {
        this.#failure = error
        for (const refused of [batch, ...this.#waiting.splice(0)]) refused.reject(error)
      }
    }
    this.#running = undefined
    this.#oldest = undefined
  }

  async #writeAll(bytes: Buffer): Promise<void> {
    let at = 0
    while (at < bytes.length) {
      try {
        const count = await writeSome(this.#fd, bytes, at)
        this.#unsynced?.add(bytes.subarray(at, at + count))
        at += count
        this.#unblock('write')
      } catch (error) {
        const code = errnoOf(error) ?? ''
        if (code === 'EPIPE') throw new ClosedPipe()
        if (code === 'EAGAIN') await pause(EAGAIN_PAUSE)
        else if (this.#options.regular && PASSING.has(code) && !this.#abandoned) {
          this.#block(error, 'write')
          await pause(RETRY_EVERY)
          if (code === 'ESTALE') this.#reopen()
        } else throw ioError(error, this.#name, 'write')
      }
    }
  }

  #block(error: unknown, doing: 'write' | 'sync'): void {
    const told = this.#blocked.size > 0
    this.#blocked.add(doing)
    if (told) return
    this.#options.onBlocked((ioError(error, this.#name, doing) as Error).message)
  }

  #unblock(doing: 'write' | 'sync'): void {
    if (!this.#blocked.delete(doing) || this.#blocked.size > 0) return
    this.#options.onBlocked(undefined)
  }

  #reopen(): void {
    try {
      this.#fd = this.#options.reopen?.() ?? this.#fd
    } catch {
      // The next try may find the server back.
    }
  }

  /** Begins a sync unless one is under way; its error is that of the next write. */
  #syncNow(): void {
    this.#syncing ??= this.#sync()
      .catch((error: unknown) => {
        this.#syncFailure = error
        this.#failure ??= error
      })
      .finally(() => {
        this.#syncing = undefined
      })
  }

  /** The run waits for this sync, and may have nothing else that keeps the process alive. */
  #syncAgain(): void {
    if (this.#closing) return
    this.#nextSync ??= setTimeout(() => {
      this.#nextSync = undefined
      this.#syncNow()
    }, RETRY_EVERY)
  }

  async #sync(): Promise<void> {
    if (!this.#dirty || !this.#options.regular) return
    this.#dirty = false
    const unsynced = this.#unsynced
    const end = unsynced?.end ?? 0
    try {
      await unsynced?.restore()
      await syncFd(this.#fd)
      unsynced?.forget(end)
      this.#unblock('sync')
    } catch (error) {
      unsynced?.lose()
      if (errnoOf(error) === 'ESTALE') this.#reopen()
      if (PASSING.has(errnoOf(error) ?? '') && !this.#abandoned) {
        this.#dirty = true
        this.#block(error, 'sync')
        this.#syncAgain()
      } else if (errnoOf(error) !== 'EINVAL') throw ioError(error, this.#name, 'sync')
    }
  }
}

function writeSome(fd: number, bytes: Buffer, at: number): Promise<number> {
  return new Promise((resolve, reject) => {
    writeFd(fd, bytes, at, bytes.length - at, null, (error, count) => {
      if (error) reject(error)
      else resolve(count)
    })
  })
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
