import { closeSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs'
import { ioError, ToolError } from '../core/tool-error.ts'
import { openPipe } from './pipe-output.ts'
import { retryStaleSync } from './stale.ts'

/** A file descriptor that answers are written to. */
export interface AppendTarget {
  fd: number
  name: string
  /** A regular file, as against a pipe or a device. */
  regular: boolean
  /** Opens a file again by its name; undefined of what has none. */
  reopen?: () => number
  /** Empties a file that is to be written anew; undefined where nothing is to be emptied. */
  empty?: () => void
  close(): void
}

/**
 * Opens FILE to append to it, or to write it anew. What it holds stays until `empty`: a run that ends
 * before its first answer, by a server that is not there, costs no answers of the run before.
 *
 * @param interrupted aborted where nobody waits for the reader of a FIFO any longer
 * @throws ToolError where it cannot be opened, Interrupted
 */
export async function openAppend(
  file: string,
  overwrite: boolean,
  interrupted: AbortSignal,
): Promise<AppendTarget> {
  try {
    let fd = (await openPipe(file, interrupted)) ?? retryStaleSync(() => openSync(file, 'a'))
    const reopen = (): number => {
      const stale = fd
      fd = openSync(file, 'a')
      closeQuietly(stale)
      return fd
    }
    const regular = fstatSync(fd).isFile()
    const empty = (): void => {
      try {
        ftruncateSync(fd)
      } catch (error) {
        throw ioError(error, file, 'write')
      }
    }
    const close = (): void => closeSync(fd)
    return {
      get fd() {
        return fd
      },
      name: file,
      regular,
      reopen,
      ...(overwrite && regular && { empty }),
      close,
    }
  } catch (error) {
    throw ioError(error, file, 'write')
  }
}

function closeQuietly(fd: number): void {
  try {
    closeSync(fd)
  } catch {
    // A stale handle says so once more.
  }
}

/**
 * Standard output as a target. A regular file that ends in the middle of a line, as `>>` meets it
 * after a crash, is refused: the first answer would be glued onto the torn one.
 *
 * @throws ToolError `torn-output`
 */
export function standardOutput(fd: number): AppendTarget {
  const stats = fstatSync(fd)
  if (stats.isFile() && stats.size > 0 && !endsWithNewline(fd, stats.size)) {
    throw new ToolError(
      'torn-output',
      'the file that standard output goes to ends in a torn line: mend it first with ' +
        'repair-truncated --tail -i FILE',
      { place: { file: '<stdout>' } },
    )
  }
  return { fd, name: '<stdout>', regular: stats.isFile(), close: () => {} }
}

/** Under `>>` the descriptor may be written only; its file is then read by another one. */
function endsWithNewline(fd: number, size: number): boolean {
  const last = Buffer.alloc(1)
  let reader: number | undefined
  try {
    reader = openSync(`/dev/fd/${fd}`, 'r')
    readSync(reader, last, 0, 1, size - 1)
  } catch {
    // No /dev/fd, or no right to read: nothing can be said of the file.
    return true
  } finally {
    if (reader !== undefined) closeSync(reader)
  }
  return last[0] === 0x0a
}
