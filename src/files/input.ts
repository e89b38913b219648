import { close, constants, fstat, fstatSync, open, type Stats } from 'node:fs'
import type { Readable } from 'node:stream'
import { isatty } from 'node:tty'
import { promisify } from 'node:util'
import type { ByteReader } from '../core/byte-reader.ts'
import { ioError, ToolError, usageError } from '../core/tool-error.ts'
import { FdReader, FileReader, KeptReader, PrefixedReader, StreamReader } from './byte-reader.ts'
import type { MemberKind } from './member.ts'
import { retryStale } from './stale.ts'

const openFd = promisify(open)
const closeFd = promisify(close)
const statFd = promisify(fstat)

/** How messages call standard input. */
export const STDIN_NAME = '<stdin>'

/** Standard input as the run was given it; the stream is only touched when it is read. */
export interface StandardInput {
  fd: number
  stream: () => Readable
}

export type Compression = 'gzip' | 'zstd'

/** An open input, `name` as messages call it. */
export interface Input {
  name: string
  reader: ByteReader
  stats: Stats
  compression: Compression | undefined
  /** Bytes that were read of the file so far, before decompression; 0 of a stream. */
  bytesRead(): number
  /** Closes it; again: nothing, since its descriptor may be another file's by then. */
  close(): Promise<void>
}

/**
 * Opens one operand; `-` is standard input. gzip and zstd are recognised by their first bytes.
 *
 * @param whole read only the bytes that are there now, not what is appended meanwhile
 * @throws ToolError where it cannot be read
 */
export async function openInput(
  operand: string,
  stdin: StandardInput,
  whole = false,
): Promise<Input> {
  return operand === '-' ? openStandardInput(stdin) : openFile(operand, whole)
}

async function openStandardInput(stdin: StandardInput): Promise<Input> {
  if (isatty(stdin.fd)) {
    throw usageError('standard input is a terminal: name a FILE, or pipe JSON lines in')
  }
  const stats = fstatSync(stdin.fd)
  if (stats.isDirectory()) throw notAFile(STDIN_NAME)
  if (stats.isFile()) {
    const reader = new FdReader(stdin.fd, null)
    return input(
      STDIN_NAME,
      reader,
      stats,
      async () => {},
      () => reader.bytesRead,
    )
  }
  const stream = stdin.stream()
  return input(STDIN_NAME, new StreamReader(stream), stats, async () => {
    stream.destroy()
  })
}

async function openFile(path: string, whole: boolean): Promise<Input> {
  try {
    const { fd, stats } = await openStat(path)
    if (stats.isDirectory()) {
      await closeFd(fd)
      throw notAFile(path)
    }
    const limit = whole && stats.isFile() ? stats.size : Number.POSITIVE_INFINITY
    if (!stats.isFile()) return await input(path, new FdReader(fd, null), stats, () => closeFd(fd))
    const reader = new FdReader(fd, 0, limit, () => openAgain(path, stats))
    return await input(
      path,
      reader,
      stats,
      () => closeFd(reader.fd),
      () => reader.bytesRead,
      (offset) => new FdReader(reader.fd, offset, limit - offset),
    )
  } catch (error) {
    throw ioError(error, path, 'read')
  }
}

function openStat(path: string): Promise<{ fd: number; stats: Stats }> {
  return retryStale(async () => {
    const fd = await openFd(path, constants.O_RDONLY)
    try {
      return { fd, stats: await statFd(fd) }
    } catch (error) {
      await closeFd(fd)
      throw error
    }
  })
}

/** The same file by another handle; undefined where its name is another file's by now. */
async function openAgain(path: string, { dev, ino }: Stats): Promise<number | undefined> {
  const { fd, stats } = await openStat(path)
  if (stats.dev === dev && stats.ino === ino) return fd
  await closeFd(fd)
  return undefined
}

/** Looks at the first bytes and puts a decompressor in between where they ask for one. */
async function input(
  name: string,
  source: ByteReader,
  stats: Stats,
  closeInput: () => Promise<void>,
  bytesRead: () => number = () => 0,
  again?: (offset: number) => ByteReader,
): Promise<Input> {
  const head = Buffer.alloc(4)
  let filled = 0
  while (filled < head.length) {
    const count = await source.read(head, filled, head.length - filled)
    if (count === 0) break
    filled += count
  }
  const whole = new PrefixedReader(head.subarray(0, filled), source)
  const compression = compressionOf(head.subarray(0, filled))
  let closed: Promise<void> | undefined
  return {
    name,
    reader: new NamedReader(await decompressor(compression, whole, name, again), name),
    stats,
    compression,
    bytesRead,
    close() {
      closed ??= closeInput()
      return closed
    },
  }
}

/** What a file's first bytes say it is compressed with. */
export function compressionOf(head: Buffer): Compression | undefined {
  if (head.length >= 2 && head.readUInt16BE(0) === 0x1f8b) return 'gzip'
  if (head.length < 4) return undefined
  const magic = head.readUInt32LE(0)
  // A skippable frame may come first, as pzstd writes it.
  return magic === 0xfd2fb528 || magic >>> 4 === 0x184d2a5 ? 'zstd' : undefined
}

/** Loads what decompresses only where something is compressed. */
async function decompressor(
  compression: Compression | undefined,
  source: ByteReader,
  name: string,
  again?: (offset: number) => ByteReader,
): Promise<ByteReader> {
  if (compression === undefined) return source
  const rereadable = again ? new FileReader(source, again) : new KeptReader(source)
  const { MemberReader } = await import('./member-reader.ts')
  return new MemberReader(rereadable, await kindOf(compression), name)
}

async function kindOf(compression: Compression): Promise<MemberKind> {
  if (compression === 'gzip') return (await import('./gzip-member.ts')).GZIP
  const { zstdKind } = await import('./zstd-member.ts')
  return zstdKind()
}

/** Gives read errors the file's name. */
class NamedReader implements ByteReader {
  #source: ByteReader
  #name: string

  constructor(source: ByteReader, name: string) {
    this.#source = source
    this.#name = name
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    try {
      return await this.#source.read(into, offset, length)
    } catch (error) {
      throw ioError(error, this.#name, 'read')
    }
  }
}

function notAFile(path: string): ToolError {
  return new ToolError('io', 'cannot read: is a directory', { place: { file: path } })
}
