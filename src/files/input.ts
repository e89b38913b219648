import {
  close,
  closeSync,
  constants,
  fstatSync,
  open,
  openSync,
  readSync,
  type Stats,
  statSync,
} from 'node:fs'
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

/** Bytes that tell how the rest is compressed. */
const HEAD = 4

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

export interface OpenOptions {
  /** Read only the bytes that are there now, not what is appended meanwhile. */
  whole?: boolean | undefined
  /** Closes the input, also while its first bytes are waited for: it ends there. */
  signal: AbortSignal
}

/**
 * Opens one operand; `-` is standard input. gzip and zstd are recognised by their first bytes.
 *
 * @throws ToolError where it cannot be read
 */
export async function openInput(
  operand: string,
  stdin: StandardInput,
  { whole = false, signal }: OpenOptions,
): Promise<Input> {
  return operand === '-' ? openStandardInput(stdin, signal) : openFile(operand, whole, signal)
}

async function openStandardInput(stdin: StandardInput, signal: AbortSignal): Promise<Input> {
  if (isatty(stdin.fd)) {
    throw usageError('standard input is a terminal: name a FILE, or pipe JSON lines in')
  }
  const stats = fstatSync(stdin.fd)
  if (stats.isDirectory()) throw notAFile(STDIN_NAME)
  if (stats.isFile()) {
    const reader = new FdReader(stdin.fd, null)
    const source = { name: STDIN_NAME, reader, stats, close: async () => {} }
    return input({ ...source, bytesRead: () => reader.bytesRead }, signal)
  }
  return streamInput(STDIN_NAME, stdin.stream(), stats, signal)
}

function streamInput(
  name: string,
  stream: Readable,
  stats: Stats,
  signal: AbortSignal,
): Promise<Input> {
  const close = async (): Promise<void> => void stream.destroy()
  return input({ name, reader: new StreamReader(stream), stats, close }, signal)
}

async function openFile(path: string, whole: boolean, signal: AbortSignal): Promise<Input> {
  try {
    const { fd, stats, head } = await openStat(path)
    if (stats.isDirectory()) {
      closeSync(fd)
      throw notAFile(path)
    }
    const limit = whole && stats.isFile() ? stats.size : Number.POSITIVE_INFINITY
    if (stats.isFIFO()) {
      const { Socket } = await import('node:net')
      return await streamInput(path, new Socket({ fd, writable: false }), stats, signal)
    }
    const source = { name: path, stats }
    if (!stats.isFile()) {
      const reader = new FdReader(fd, null)
      return await input({ ...source, reader, close: () => closeFd(fd) }, signal)
    }
    const reader = new FdReader(fd, 0, limit, () => openAgain(path, stats))
    const file: Source = {
      ...source,
      reader,
      head,
      close: async () => closeSync(reader.fd),
      bytesRead: () => reader.bytesRead,
      again: (offset) => new FdReader(reader.fd, offset, limit - offset),
    }
    return await input(file, signal)
  } catch (error) {
    throw ioError(error, path, 'read')
  }
}

/**
 * What opens a FIFO without waiting for a writer: a thread that waits in open(2) or read(2) cannot be
 * told of a signal, and keeps the process from ending. Only Linux reports no end of file of a FIFO
 * that has had no writer yet.
 */
const PIPE_FLAGS = process.platform === 'linux' ? constants.O_NONBLOCK : 0

interface OpenFile {
  fd: number
  stats: Stats
  /** The first bytes of a regular file. */
  head: Buffer | undefined
}

/** A file is there at once, and each turn through libuv's threads costs half a millisecond. */
function openStat(path: string): Promise<OpenFile> {
  return retryStale(async () => {
    const isPipe = statSync(path).isFIFO()
    const fd = isPipe
      ? await openFd(path, constants.O_RDONLY | PIPE_FLAGS)
      : openSync(path, constants.O_RDONLY)
    try {
      const stats = fstatSync(fd)
      return { fd, stats, head: stats.isFile() ? headOf(fd) : undefined }
    } catch (error) {
      closeSync(fd)
      throw error
    }
  })
}

function headOf(fd: number): Buffer {
  const head = Buffer.alloc(HEAD)
  return head.subarray(0, readSync(fd, head, 0, HEAD, 0))
}

/** The same file by another handle; undefined where its name is another file's by now. */
async function openAgain(path: string, { dev, ino }: Stats): Promise<number | undefined> {
  const { fd, stats } = await openStat(path)
  if (stats.dev === dev && stats.ino === ino) return fd
  closeSync(fd)
  return undefined
}

/** What is open, before it is known whether it is compressed. */
interface Source {
  name: string
  reader: ByteReader
  stats: Stats
  /** Its first bytes, where the reader gives them all the same. */
  head?: Buffer | undefined
  close: () => Promise<void>
  bytesRead?: () => number
  /** Reads from an offset on; absent where that cannot be. */
  again?: (offset: number) => ByteReader
}

/** Looks at the first bytes and puts a decompressor in between where they ask for one. */
async function input(source: Source, signal: AbortSignal): Promise<Input> {
  const { name, stats } = source
  let closed: Promise<void> | undefined
  const onAbort = (): void => void close()
  const close = (): Promise<void> => {
    signal.removeEventListener('abort', onAbort)
    closed ??= source.close()
    return closed
  }
  signal.addEventListener('abort', onAbort)
  if (signal.aborted) await close()
  const head = source.head ?? (await readHead(source.reader))
  const whole = source.head ? source.reader : new PrefixedReader(head, source.reader)
  const compression = compressionOf(head)
  const reader = await decompressor(compression, whole, name, source.again)
  return {
    name,
    reader: new NamedReader(reader, name),
    stats,
    compression,
    bytesRead: source.bytesRead ?? (() => 0),
    close,
  }
}

/** The bytes that tell how the rest is compressed, or fewer where there are no more. */
async function readHead(reader: ByteReader): Promise<Buffer> {
  const head = Buffer.alloc(HEAD)
  let filled = 0
  while (filled < head.length) {
    const count = await reader.read(head, filled, head.length - filled)
    if (count === 0) break
    filled += count
  }
  return head.subarray(0, filled)
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
