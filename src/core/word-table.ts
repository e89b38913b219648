import { sameBytes, stringText } from './json-string.ts'

const BACKSLASH = 0x5c
const NONE: readonly number[] = []

/** Finds which of a few words a string token spells, without making a string of it. */
export class WordTable {
  #words: readonly Buffer[]
  /** Places in the list by length of the word. */
  #byLength: number[][] = []

  constructor(words: readonly string[]) {
    this.#words = words.map((word) => Buffer.from(word))
    for (const [index, { length }] of this.#words.entries()) {
      this.#byLength[length] ??= []
      this.#byLength[length].push(index)
    }
  }

  /**
   * The place of the word that the token at `start` to `end` (quotes included) spells; else -1.
   *
   * @param mayEscape whether the token can hold an escape: a scanner tells so of keys
   */
  indexOf(bytes: Buffer, start: number, end: number, mayEscape = true): number {
    const from = start + 1
    const length = end - start - 2
    const candidates = this.#byLength[length] ?? NONE
    for (let i = 0; i < candidates.length; i++) {
      const index = candidates[i]!
      const word = this.#words[index]!
      let at = 0
      while (at < length && bytes[from + at] === word[at]) at++
      if (at === length) return index
    }
    if (!mayEscape) return -1
    // A token with an escape may spell a word that is shorter.
    for (let at = from; at < end; at++) {
      if (bytes[at] === BACKSLASH) return this.#indexOfText(stringText(bytes, start, end))
    }
    return -1
  }

  #indexOfText(text: ReturnType<typeof stringText>): number {
    return this.#words.findIndex((word) =>
      sameBytes(text, { bytes: word, start: 0, end: word.length }),
    )
  }
}
