import type { RemovedPiece } from './removed-piece.ts'

/** Bytes that a repair takes out, and why. */
export interface Removal extends RemovedPiece {
  /** The torn end of a file, a torn part inside a line, or a line as a whole. */
  kind: 'tail' | 'part' | 'line'
  message: string
  line: number
  /** Where in the line its fault is, in bytes from 1. */
  column: number
}

/** Where a repair's results go. Byte ranges of a block must be used before the next block. */
export interface RepairTarget {
  /** Takes bytes that are kept, in order; they stand at `offset` in the file. */
  keep(bytes: Buffer, start: number, end: number, offset: number): void
  /** Takes a line feed that the file does not have. */
  addNewline(): void
  remove(removal: Removal): void
  /** Whether a conflict marker at this offset makes the file one that is refused. */
  mayRefuse(offset: number): boolean
}
