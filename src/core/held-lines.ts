import { PADDING } from './json-scan.ts'

/** Bad lines are held for the first valid record, their evidence, up to this many bytes. */
const HELD_MOST = 16 * 1024 * 1024

/** A line that is not clean, where it stands, and its first fault. */
export interface RepairLine {
  bytes: Buffer
  start: number
  /** Its line feed excluded. */
  end: number
  terminated: boolean
  /** Offset of its first byte in the file. */
  offset: number
  number: number
  code: string
  message: string
  /** Of its first fault, in bytes from 1. */
  column: number
}

/** Copies of bad lines that come before the first valid record. */
export class HeldLines {
  /** They were too many: none is held any more. */
  gaveUp = false
  #lines: RepairLine[] = []
  #bytes = 0

  get any(): boolean {
    return this.#lines.length > 0
  }

  /** Holds a line; returns the lines that are given up, all of them where they are too many. */
  add(line: RepairLine): RepairLine[] {
    const { start, end } = line
    const length = end - start
    const copy = Buffer.allocUnsafe(length + 1 + PADDING)
    line.bytes.copy(copy, 0, start, end)
    copy[length] = 0x0a
    this.#lines.push({ ...line, bytes: copy, start: 0, end: length })
    this.#bytes += length + 1
    this.gaveUp = this.#bytes > HELD_MOST
    return this.gaveUp ? this.take() : []
  }

  /** Gives the lines that are held, and holds them no longer. */
  take(): RepairLine[] {
    return this.#lines.splice(0)
  }
}
