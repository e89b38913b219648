import { isUtf8 } from 'node:buffer'
import type { ValueRange } from '../../core/field.ts'
import { JsonScanner } from '../../core/json-scan.ts'
import { LineJoiner } from '../../core/line-joiner.ts'

const LINE_FEED = 0x0a

/** Scans elements of an array where they lie, also those that are laid out over several lines. */
export class ElementScan {
  #scanner = new JsonScanner()
  #joiner = new LineJoiner()

  /**
   * Hands an element on if it is JSON, as one line.
   *
   * @param hasLineFeeds whether there are line feeds in it, none of them in a string
   * @param take gets the scanner that has just read it
   * @returns whether it is JSON; if not, its bytes are as they were
   */
  use(
    bytes: Buffer,
    { start, end }: ValueRange,
    hasLineFeeds: boolean,
    take: (scanner: JsonScanner) => void,
  ): boolean {
    if (hasLineFeeds) this.#joiner.join(bytes, start, end)
    this.#scanner.use(bytes)
    // The scanner needs a line feed behind what it reads.
    const byte = bytes[end]!
    bytes[end] = LINE_FEED
    const isJson = isUtf8(bytes.subarray(start, end)) && this.#scanner.scan(start, end)
    if (isJson) take(this.#scanner)
    bytes[end] = byte
    if (hasLineFeeds && !isJson) this.#joiner.undo(bytes)
    return isJson
  }
}
