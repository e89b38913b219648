/**
 * Puts results into the order of the input (`--keep-order`). What waits for a slow one is bounded by
 * the records that are in memory at all: reading stops when they are too many.
 */
export class OrderedOutput {
  #write: (line: string) => Promise<void>
  #next = 0
  #waiting = new Map<
    number,
    { line: string | undefined; done: () => void; failed: (error: unknown) => void }
  >()

  constructor(write: (line: string) => Promise<void>) {
    this.#write = write
  }

  /**
   * Takes the result of the record with this number in the input, from 0.
   *
   * @param line undefined where the record gives none
   * @returns when it is written
   */
  put(index: number, line: string | undefined): Promise<void> {
    return new Promise((done, failed) => {
      this.#waiting.set(index, { line, done, failed })
      for (;;) {
        const ready = this.#waiting.get(this.#next)
        if (ready === undefined) return
        this.#waiting.delete(this.#next++)
        if (ready.line === undefined) ready.done()
        else this.#write(ready.line).then(ready.done, ready.failed)
      }
    })
  }
}
