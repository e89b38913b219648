import { JsonGrammar } from './json-grammar.ts'
import { parseString } from './json-string.ts'

/** A step into a value: a key, or null for any element of an array. */
export type Step = string | null

/** The beginning of an object whose rest was never written. */
export interface TornObject {
  /** Top-level keys that are whole, in order. */
  keys: string[]
  /** What there is of a top-level key that the tear cut; undefined where it cut something else. */
  cutKey: string | undefined
  /** The way to the place of the tear, where a value may stand there; undefined elsewhere. */
  valuePath: Step[] | undefined
  /** Per open container, the outermost first. */
  open: OpenContainer[]
}

export interface OpenContainer {
  isObject: boolean
  /** Behind its last complete member, or behind its bracket where it has none. */
  completeEnd: number
  /** Whether it has a complete member. */
  hasMember: boolean
  /** The token of the key read last, offsets in the buffer. */
  keyStart: number
  keyEnd: number
}

/**
 * Reads the bytes from `start` to `end` as the beginning of an object.
 *
 * @returns undefined where they are none: another value, a whole object, or broken
 */
export function readTorn(bytes: Buffer, start: number, end: number): TornObject | undefined {
  if (bytes[start] !== 0x7b) return undefined
  const grammar = new JsonGrammar()
  if (grammar.feed(bytes, start, end) >= 0 || grammar.complete) return undefined
  const walk = new TornWalk(bytes, end)
  walk.run(start)
  const mayHoldValue = grammar.state === 'value' || grammar.state === 'first-element'
  return {
    keys: walk.topKeys.map(([keyStart, keyEnd]) => parseString(bytes, keyStart, keyEnd)),
    cutKey: walk.cutKey < 0 ? undefined : cutText(bytes, walk.cutKey, end),
    valuePath: mayHoldValue ? walk.open.map((container) => stepInto(bytes, container)) : undefined,
    open: walk.open,
  }
}

function stepInto(bytes: Buffer, { isObject, keyStart, keyEnd }: OpenContainer): Step {
  return isObject ? parseString(bytes, keyStart, keyEnd) : null
}

/** Goes over bytes that the grammar has found to be a beginning, and keeps the open containers. */
class TornWalk {
  readonly open: OpenContainer[] = []
  readonly topKeys: [number, number][] = []
  /** Where a cut top-level key begins, or -1. */
  cutKey = -1
  #bytes: Buffer
  #end: number
  #keyNext = false

  constructor(bytes: Buffer, end: number) {
    this.#bytes = bytes
    this.#end = end
  }

  run(start: number): void {
    for (let at = start; at < this.#end; ) at = this.#token(at)
  }

  /** Reads the token at `at`; returns the offset behind it. */
  #token(at: number): number {
    const byte = this.#bytes[at]!
    if (byte === 0x22) return this.#string(at)
    if (byte === 0x7b || byte === 0x5b) {
      this.#keyNext = byte === 0x7b
      this.open.push({
        isObject: this.#keyNext,
        completeEnd: at + 1,
        hasMember: false,
        keyStart: 0,
        keyEnd: 0,
      })
    } else if (byte === 0x7d || byte === 0x5d) {
      this.open.pop()
      this.#complete(at + 1)
    } else if (byte === 0x2c) {
      this.#keyNext = this.open.at(-1)!.isObject
    } else if (byte > 0x20 && byte !== 0x3a) {
      return this.#scalar(at)
    }
    return at + 1
  }

  #string(at: number): number {
    const close = stringClose(this.#bytes, at, this.#end)
    if (!this.#keyNext) {
      if (close >= 0) this.#complete(close)
    } else if (close < 0) {
      if (this.open.length === 1) this.cutKey = at
    } else {
      const container = this.open.at(-1)!
      container.keyStart = at
      container.keyEnd = close
      if (this.open.length === 1) this.topKeys.push([at, close])
      this.#keyNext = false
    }
    return close < 0 ? this.#end : close
  }

  #scalar(start: number): number {
    let at = start
    while (at < this.#end && !isDelimiter(this.#bytes[at]!)) at++
    const first = this.#bytes[start]!
    const isLiteral = first >= 0x61
    // Digits may follow a number that the tear touches; a literal has its length.
    const whole = isLiteral ? at - start === (first === 0x66 ? 5 : 4) : at < this.#end
    if (whole) this.#complete(at)
    return at
  }

  #complete(end: number): void {
    const container = this.open.at(-1)!
    container.completeEnd = end
    container.hasMember = true
    this.#keyNext = false
  }
}

/** The offset behind the string that begins at `at`, or -1 where it does not end before `end`. */
function stringClose(bytes: Buffer, at: number, end: number): number {
  for (let i = at + 1; i < end; i++) {
    const byte = bytes[i]
    if (byte === 0x22) return i + 1
    if (byte === 0x5c) i++
  }
  return -1
}

function isDelimiter(byte: number): boolean {
  return byte <= 0x20 || byte === 0x2c || byte === 0x5d || byte === 0x7d
}

/** The text of a string token without its end: an escape or character that is cut is left out. */
function cutText(bytes: Buffer, start: number, end: number): string {
  let stop = start + 1
  while (stop < end) {
    const length = characterLength(bytes, stop)
    if (stop + length > end) break
    stop += length
  }
  return JSON.parse(`${bytes.toString('utf8', start, stop)}"`)
}

function characterLength(bytes: Buffer, at: number): number {
  const byte = bytes[at]!
  if (byte === 0x5c) return bytes[at + 1] === 0x75 ? 6 : 2
  if (byte < 0xc0) return 1
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}
