const LINE_FEED = 0x0a
const SPACE = 0x20

/** Makes one line of a value that is laid out over several, none of them in a string. */
export class LineJoiner {
  #places: number[] = []

  /** Puts spaces in the place of line feeds. */
  join(bytes: Buffer, start: number, end: number): void {
    this.#places.length = 0
    const value = bytes.subarray(start, end)
    for (let at = value.indexOf(LINE_FEED); at >= 0; at = value.indexOf(LINE_FEED, at + 1)) {
      value[at] = SPACE
      this.#places.push(start + at)
    }
  }

  /** Puts the line feeds back. */
  undo(bytes: Buffer): void {
    for (const at of this.#places) bytes[at] = LINE_FEED
  }
}
