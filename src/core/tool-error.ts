/** How a run ended, as the shell sees it. Signals add 128 + their number. */
export const EXIT = { ok: 0, data: 1, trouble: 2 } as const

/** Where in the input something is; lines and columns from 1, columns count bytes. */
export interface Place {
  file: string
  line?: number
  column?: number
}

/**
 * An end of the run that a person caused or can mend: thrown anywhere, printed in one place
 * (cli/main.ts) as one line without a stack trace.
 */
export class ToolError extends Error {
  /** Stable, for scripts: printed in brackets behind the message. */
  readonly code: string
  readonly exitCode: 1 | 2
  readonly place: Place | undefined

  constructor(code: string, message: string, options: { exitCode?: 1 | 2; place?: Place } = {}) {
    super(message)
    this.name = 'ToolError'
    this.code = code
    this.exitCode = options.exitCode ?? 2
    this.place = options.place
  }
}

/** A wrong command line. */
export function usageError(message: string): ToolError {
  return new ToolError('usage', message)
}

/** The reader of our output has gone (`| head -3`): no error, the run just ends, exit code 0. */
export class ClosedPipe extends Error {
  constructor() {
    super('the reader of the output has gone')
    this.name = 'ClosedPipe'
  }
}

/** A signal asked the run to end while it was reading. */
export class Interrupted extends Error {
  constructor() {
    super('interrupted')
    this.name = 'Interrupted'
  }
}

const SENTENCES: Record<string, string> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'is a directory',
  ENOTDIR: 'a part of the path is not a directory',
  ENOSPC: 'no space left on device',
  EDQUOT: 'disk quota exceeded',
  EFBIG: 'file too large for the file system or the limit set with ulimit -f',
  EROFS: 'read-only file system',
  EIO: 'input/output error',
  EMFILE: 'too many open files (see ulimit -n)',
  ENXIO: 'no such device, or a pipe that nobody reads',
  ELOOP: 'too many levels of symbolic links',
  ENAMETOOLONG: 'file name too long',
  ETXTBSY: 'file is in use',
  ESTALE: 'stale file handle',
}

/** Errors that libuv has no name for, so that their code is 'Unknown system error -122'. */
const UNNAMED: Record<number, string> = {
  122: 'EDQUOT', // Linux
  116: 'ESTALE',
  69: 'EDQUOT', // macOS
  70: 'ESTALE',
}

/** The errno name of a system error, such as `ENOENT`; undefined for other errors. */
export function errnoOf(error: unknown): string | undefined {
  const { code, errno } = (error ?? {}) as { code?: unknown; errno?: unknown }
  if (typeof code === 'string' && /^E[A-Z0-9]+$/.test(code)) return code
  return typeof errno === 'number' ? UNNAMED[-errno] : undefined
}

/** A system error of reading or writing `file` as a ToolError; other errors stay as they are. */
export function ioError(error: unknown, file: string, doing: string): unknown {
  const code = errnoOf(error)
  if (code === undefined) return error
  const sentence = SENTENCES[code] ?? (error as Error).message
  return new ToolError('io', `cannot ${doing}: ${sentence}`, { place: { file } })
}
