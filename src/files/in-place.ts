import { createHash, randomBytes } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import {
  copyFile,
  type FileHandle,
  link,
  lstat,
  open,
  readdir,
  realpath,
  rename,
  stat,
  unlink,
} from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { ioError, ToolError } from '../core/tool-error.ts'
import { FdSink } from './fd-sink.ts'
import type { Compression } from './input.ts'
import { isAlive } from './process-alive.ts'

/** The unchanged beginning of a file is copied in pieces of this size. */
const COPY_SIZE = 1024 * 1024

/** A temporary file that nobody has written to for so long may be a dead process's, in ms. */
const STALE_AFTER = 60_000

/**
 * Rewrites a file so that at every moment it is either the old one or the new one: a temporary file
 * beside it, brought to the disk, takes its place. While what is kept is what the file begins with,
 * nothing is written.
 */
export class InPlaceFile {
  /** The file itself, where the path given was a symbolic link to it. */
  readonly path: string
  #source: FileHandle
  #before: Stats
  /** Bytes at the file's beginning that were kept as they are. */
  #same = 0
  #changed = false
  #temporary: { path: string; handle: FileHandle; sink: FdSink } | undefined

  /**
   * @throws ToolError where it cannot be read, or is no regular file
   */
  static async open(path: string): Promise<InPlaceFile> {
    try {
      const target = await linkTarget(path)
      const source = await open(target, constants.O_RDONLY)
      const stats = await source.stat()
      if (!stats.isFile()) {
        await source.close()
        throw new ToolError('not-a-file', 'only a regular file can be repaired in place', {
          place: { file: path },
        })
      }
      await removeStale(target)
      return new InPlaceFile(target, source, stats)
    } catch (error) {
      throw ioError(error, path, 'read')
    }
  }

  constructor(path: string, source: FileHandle, before: Stats) {
    this.path = path
    this.#source = source
    this.#before = before
  }

  /** Whether the new file differs from the old one, as far as it goes. */
  get changed(): boolean {
    return this.#changed
  }

  /** The file as it was when it was opened. */
  get stats(): Stats {
    return this.#before
  }

  /** Keeps bytes, which stood at `offset` in the old file (-1: nowhere). */
  keep(bytes: Buffer, start: number, end: number, offset: number): void {
    if (!this.#changed && offset === this.#same) {
      this.#same += end - start
      return
    }
    this.#changed = true
    this.#pending.push({ bytes, start, end })
  }

  #pending: { bytes: Buffer; start: number; end: number }[] = []

  /** Writes what was kept; the byte ranges are free afterwards. */
  async flush(): Promise<void> {
    if (!this.#changed) return
    this.#temporary ??= await this.#create()
    const { sink } = this.#temporary
    for (const { bytes, start, end } of this.#pending.splice(0)) sink.add(bytes, start, end)
    await sink.flush()
  }

  /** Tells that all of the file has been kept or left out. */
  end(): void {
    if (this.#same < this.#before.size) this.#changed = true
  }

  /**
   * Puts the new file in the old one's place.
   *
   * @param suffix the old file is kept under its name with this behind it
   * @throws ToolError where it cannot be done: the old file is as it was
   */
  async replace(suffix: string): Promise<void> {
    await this.flush()
    await this.checkUntouched()
    const temporary = this.#temporary!
    try {
      const { mode, uid, gid } = this.#before
      const own = await temporary.handle.stat()
      if (own.uid !== uid || own.gid !== gid) await temporary.handle.chown(uid, gid)
      await temporary.handle.chmod(mode & 0o7777)
      await temporary.handle.sync()
      if (suffix !== '') await keepOld(this.path, this.path + suffix)
      await rename(temporary.path, this.path)
    } catch (error) {
      throw ioError(error, this.path, 'replace')
    }
    this.#temporary = undefined
    await temporary.handle.close()
    await syncDirectory(this.path)
  }

  /** @throws ToolError where another process has written to the file, or replaced it */
  async checkUntouched(): Promise<void> {
    const before = this.#before
    const now = await this.#source.stat()
    const named = await stat(this.path).catch(() => undefined)
    if (now.size === before.size && now.mtimeMs === before.mtimeMs && named?.ino === before.ino) {
      return
    }
    throw new ToolError('changed', 'another process is writing to it: left as it is', {
      place: { file: this.path },
    })
  }

  /** Removes the temporary file, if there is one still, and closes. */
  async close(): Promise<void> {
    const temporary = this.#temporary
    this.#temporary = undefined
    if (temporary !== undefined) {
      await temporary.handle.close()
      await unlink(temporary.path).catch(() => {})
    }
    await this.#source.close()
  }

  async #create(): Promise<{ path: string; handle: FileHandle; sink: FdSink }> {
    const path = temporaryPath(this.path)
    try {
      const handle = await open(path, 'wx', 0o600)
      const sink = new FdSink(handle.fd, path)
      this.#temporary = { path, handle, sink }
      await this.#copyBeginning(sink)
      return this.#temporary
    } catch (error) {
      throw ioError(error, path, 'write')
    }
  }

  async #copyBeginning(sink: FdSink): Promise<void> {
    const buffer = Buffer.allocUnsafeSlow(Math.min(COPY_SIZE, this.#same))
    for (let at = 0; at < this.#same; ) {
      const wanted = Math.min(buffer.length, this.#same - at)
      const { bytesRead } = await this.#source.read(buffer, 0, wanted, at)
      if (bytesRead === 0) await this.checkUntouched()
      sink.add(buffer, 0, bytesRead)
      await sink.flush()
      at += bytesRead
    }
  }
}

/** What a person is told who wants a compressed file repaired in place. */
export function compressedRefusal(file: string, compression: Compression): ToolError {
  const [unpack, pack] = compression === 'gzip' ? ['zcat', 'gzip'] : ['zstdcat', 'zstd']
  const way = `${unpack} ${file} | repair-truncated | ${pack} > repaired`
  return new ToolError('compressed', `a compressed file is not repaired in place: ${way}`, {
    place: { file },
  })
}

/** The file that a symbolic link leads to; another path as it is, for messages. */
export async function linkTarget(path: string): Promise<string> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await realpath(path) : path
  } catch (error) {
    throw ioError(error, path, 'read')
  }
}

/** `.NAME.repair-HOST-PID-XXXXXXXX`: it tells whose it is, and no glob of data files matches it. */
function temporaryPath(path: string): string {
  return join(
    dirname(path),
    `${temporaryPrefix(path)}${process.pid}-${randomBytes(4).toString('hex')}`,
  )
}

function temporaryPrefix(path: string): string {
  const name = basename(path)
  // A name has room for 255 bytes.
  const short =
    Buffer.byteLength(name) < 128
      ? name
      : createHash('sha256').update(name).digest('hex').slice(0, 32)
  return `.${short}.repair-${hostname().slice(0, 64)}-`
}

/** Removes the temporary files that repairs on this host left when they were killed. */
async function removeStale(path: string): Promise<void> {
  const prefix = temporaryPrefix(path)
  const directory = dirname(path)
  const names = await readdir(directory).catch(() => [])
  for (const name of names) {
    const [, pid] = name.startsWith(prefix)
      ? (/^(\d+)-[0-9a-f]{8}$/.exec(name.slice(prefix.length)) ?? [])
      : []
    if (pid === undefined || isAlive(Number(pid))) continue
    const file = join(directory, name)
    const stats = await stat(file).catch(() => undefined)
    const idle = Date.now() - (stats?.mtimeMs ?? Date.now())
    if (idle > STALE_AFTER) await unlink(file).catch(() => {})
  }
}

/** Gives the old file a second name, over what has that name, without a moment without a file. */
async function keepOld(path: string, kept: string): Promise<void> {
  const temporary = temporaryPath(path)
  try {
    await link(path, temporary)
  } catch {
    // A file system without hard links.
    await copyFile(path, temporary, constants.COPYFILE_EXCL)
  }
  await rename(temporary, kept)
}

/** Brings a rename to the disk; not every file system can, and the data is there already. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(dirname(path), constants.O_RDONLY).catch(() => undefined)
  await handle?.sync().catch(() => {})
  await handle?.close()
}
