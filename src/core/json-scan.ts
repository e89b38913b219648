/**
 * The fast pass over JSON text: is this line one value by RFC 8259, and where are its top-level
 * members? It answers only yes or no; json-problem.ts says what is wrong and where.
 *
 * The bytes must have been checked to be UTF-8 (`isUtf8`, native, 12 GB/s over a whole block): then
 * every byte above 0x7f can only be string content, and the grammar needs to know ASCII alone.
 *
 * Bytes that lie in memory of the kernel are read by it, src/kernel/value.ts, with the same answers.
 */

import { numberEnd } from './json-number.ts'
import { type Kernel, kernelOf, LEFT_TO_JAVASCRIPT } from './kernel.ts'
import { LONG_STRING, LongStrings } from './long-strings.ts'

const QUOTE = 0x22
const BACKSLASH = 0x5c
const COLON = 0x3a
const COMMA = 0x2c
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d

/** 'true', 'alse' and 'null' as the little-endian words that DataView.getInt32 reads. */
const TRUE = 0x65757274
const ALSE = 0x65736c61
const NULL = 0x6c6c756e

/** Objects with more keys than this are left to the second look. */
const KEYS_COMPARED = 64

/** Bytes that must be readable behind the end of a scanned range: strings are read by fours. */
export const PADDING = 8

/** Numbers per top-level member in `JsonScanner.members`. */
export const MEMBER_STRIDE = 4

export class JsonScanner {
  /** `memberCount` times [key start, key end, value start, value end), quotes of the key included. */
  members = new Int32Array(64 * MEMBER_STRIDE)
  /** Top-level members of the last value, 0 unless it was an object. */
  memberCount = 0
  /** The last value may repeat a key, or has one with an escape, or holds a lone surrogate. */
  suspect = false
  /** The deepest nesting of the last value; a scalar has 0. */
  depth = 0
  /** The long strings of the last value, keys not among them. */
  readonly longStrings = new LongStrings()

  /** Where the value begins that was read last, -1 where that failed. */
  #last = -1
  #bytes: Uint8Array = new Uint8Array(PADDING)
  #view = new DataView(this.#bytes.buffer)
  #kernel: Kernel | undefined
  /** Per open container: the byte that closes it, and for objects their keys on the hash stack. */
  #closers = new Uint8Array(64)
  #keyBase = new Int32Array(64)
  #keyBloom = new Int32Array(64)
  #keyHashes = new Int32Array(64 * KEYS_COMPARED)
  #keys = 0
  #keyEnd = 0
  readonly #comparesKeys: boolean

  /** @param comparesKeys whether a key given twice makes a value suspect: a tenth of the time */
  constructor(comparesKeys = true) {
    this.#comparesKeys = comparesKeys
  }

  /**
   * Sets the buffer that `scan` and `value` read.
   *
   * @param bytes at least {@link PADDING} bytes longer than the last offset that will be scanned
   */
  use(bytes: Uint8Array): void {
    this.#last = -1
    if (bytes === this.#bytes) return
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    this.#kernel = kernelOf(bytes)
  }

  /**
   * Whether the bytes from `start` to `end` are one JSON value, white space around it allowed.
   * `bytes[end]` must be 0x0A: the line's own, or one put there.
   */
  scan(start: number, end: number): boolean {
    const bytes = this.#bytes
    let at = this.value(start)
    if (at < 0) return false
    while (at < end && isBlank(bytes[at]!)) at++
    return at === end
  }

  /** Reads the value at `start` unless it was the last one read, whose members still stand. */
  again(start: number): void {
    if (this.#last !== start) this.value(start)
  }

  /**
   * Reads the value that begins at `start` (white space before it allowed) and records its top-level
   * members.
   *
   * @returns the offset behind the value, or -1 where the grammar is broken
   */
  value(start: number): number {
    this.#last = -1
    const kernel = this.#kernel
    const end = kernel === undefined ? LEFT_TO_JAVASCRIPT : this.#valueByKernel(kernel, start)
    return end === LEFT_TO_JAVASCRIPT ? this.#valueByLoop(start) : end
  }

  #valueByKernel({ run, header, members, longStrings }: Kernel, start: number): number {
    const end = run.value(start, this.#comparesKeys)
    if (end < 0) return end
    this.memberCount = header[0]!
    this.suspect = header[1] !== 0
    this.depth = header[2]!
    this.longStrings.take(longStrings, header[3]!)
    const numbers = this.memberCount * MEMBER_STRIDE
    while (numbers > this.members.length) this.#growMembers()
    // Another scanner may read in the same memory meanwhile.
    for (let i = 0; i < numbers; i++) this.members[i] = members[i]!
    this.#last = start
    return end
  }

  // oxlint-disable-next-line max-lines-per-function -- one loop: calls for its states cost a third
  #valueByLoop(start: number): number {
    const bytes = this.#bytes
    let closers = this.#closers
    let members = this.members
    let member = -MEMBER_STRIDE
    let depth = 0
    let deepest = 0
    let closer = 0
    let at = start
    this.suspect = false
    this.#keys = 0
    this.longStrings.clear()

    for (;;) {
      let byte = bytes[at]!
      while (byte <= 0x20 && isBlank(byte)) byte = bytes[++at]!
      if (depth === 1 && closer === CLOSE_BRACE) members[member + 2] = at

      if (byte === QUOTE) {
        const opened = at
        at = this.#string(at + 1)
        if (at < 0) return -1
        if (at - opened > LONG_STRING) this.longStrings.add(opened, at)
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        closer = byte + 2
        if (++depth > deepest) {
          deepest = depth
          if (depth === closers.length) closers = this.#deepen()
        }
        closers[depth] = closer
        byte = bytes[++at]!
        while (byte <= 0x20 && isBlank(byte)) byte = bytes[++at]!
        if (byte !== closer) {
          if (closer === CLOSE_BRACKET) continue
          this.#keyBase[depth] = this.#keys
          this.#keyBloom[depth] = 0
          const value = this.#key(at, depth)
          if (value < 0) return -1
          if (depth === 1) {
            member = 0
            members[0] = at
            members[1] = this.#keyEnd
          }
          at = value
          continue
        }
        at++
        closer = closers[--depth]!
      } else {
        at = this.#scalar(at, byte)
        if (at < 0) return -1
      }

      for (;;) {
        if (depth === 0) {
          this.memberCount = member / MEMBER_STRIDE + 1
          this.depth = deepest
          this.#last = start
          return at
        }
        if (depth === 1 && closer === CLOSE_BRACE) members[member + 3] = at
        byte = bytes[at]!
        while (byte <= 0x20 && isBlank(byte)) byte = bytes[++at]!
        if (byte === COMMA) break
        if (byte !== closer) return -1
        at++
        if (closer === CLOSE_BRACE) this.#keys = this.#keyBase[depth]!
        closer = closers[--depth]!
      }

      at++
      if (closer === CLOSE_BRACKET) continue
      byte = bytes[at]!
      while (byte <= 0x20 && isBlank(byte)) byte = bytes[++at]!
      const value = this.#key(at, depth)
      if (value < 0) return -1
      if (depth === 1) {
        member += MEMBER_STRIDE
        if (member === members.length) members = this.#growMembers()
        members[member] = at
        members[member + 1] = this.#keyEnd
      }
      at = value
    }
  }

  /** Reads `"key" :` at `at`; sets `#keyEnd`; returns the offset behind the colon, or -1. */
  #key(at: number, depth: number): number {
    const bytes = this.#bytes
    if (bytes[at] !== QUOTE) return -1
    if (!this.#comparesKeys) return this.#plainKey(at + 1)
    const view = this.#view
    let hash = 0
    let end = at + 1
    for (;;) {
      const word = view.getInt32(end, true)
      const stops = stopsIn(word)
      if (stops === 0) {
        hash = Math.imul(hash ^ word, 0x9e3779b1)
        hash ^= hash >>> 15
        end += 4
        continue
      }
      const bits = 24 - Math.clz32(stops & -stops)
      hash = Math.imul(hash ^ (word & ((1 << bits) - 1)), 0x9e3779b1)
      hash ^= hash >>> 15
      end += bits >> 3
      if (bytes[end] === QUOTE) {
        end++
        break
      }
      // An escaped key may equal one that is spelt otherwise: only the second look decodes.
      this.suspect = true
      end = this.#string(end)
      if (end < 0) return -1
      break
    }
    this.#remember(hash, depth)
    this.#keyEnd = end
    let byte = bytes[end]!
    while (byte <= 0x20 && isBlank(byte)) byte = bytes[++end]!
    return byte === COLON ? end + 1 : -1
  }

  /** The same from behind the opening quote on, where keys are not compared. */
  #plainKey(at: number): number {
    const bytes = this.#bytes
    const view = this.#view
    let end = at
    let stops = stopsIn(view.getInt32(end, true))
    while (stops === 0) {
      end += 4
      stops = stopsIn(view.getInt32(end, true))
    }
    end += (24 - Math.clz32(stops & -stops)) >> 3
    if (bytes[end] === QUOTE) end++
    else {
      this.suspect = true
      end = this.#string(end)
      if (end < 0) return -1
    }
    this.#keyEnd = end
    let byte = bytes[end]!
    while (byte <= 0x20 && isBlank(byte)) byte = bytes[++end]!
    return byte === COLON ? end + 1 : -1
  }

  /** Compares a key's hash with those of its object so far; equal ones make the value suspect. */
  #remember(hash: number, depth: number): void {
    let hashes = this.#keyHashes
    const base = this.#keyBase[depth]!
    const keys = this.#keys
    if (keys - base === KEYS_COMPARED) {
      this.suspect = true
      return
    }
    const bit = 1 << (hash >>> 27)
    const bloom = this.#keyBloom[depth]!
    if ((bloom & bit) !== 0) {
      for (let i = base; i < keys; i++) if (hashes[i] === hash) this.suspect = true
    }
    this.#keyBloom[depth] = bloom | bit
    if (keys === hashes.length) {
      hashes = grown(hashes)
      this.#keyHashes = hashes
    }
    hashes[keys] = hash
    this.#keys = keys + 1
  }

  /** Reads a string from behind its opening quote to behind its closing one; -1 if it is broken. */
  #string(start: number): number {
    const view = this.#view
    let at = start
    for (;;) {
      const stops = stopsIn(view.getInt32(at, true))
      if (stops === 0) {
        at += 4
        continue
      }
      at += (24 - Math.clz32(stops & -stops)) >> 3
      const byte = this.#bytes[at]!
      if (byte === QUOTE) return at + 1
      if (byte !== BACKSLASH) return -1
      at = this.#escape(at + 1)
      if (at < 0) return -1
    }
  }

  /** Reads what follows a backslash; -1 if it is no escape. */
  #escape(at: number): number {
    const byte = this.#bytes[at]!
    if (byte !== 0x75) return SIMPLE_ESCAPE[byte] === 1 ? at + 1 : -1
    for (let i = 1; i <= 4; i++) {
      if (!isHex(this.#bytes[at + i]!)) return -1
    }
    const first = this.#bytes[at + 1]! | 0x20
    const second = this.#bytes[at + 2]! | 0x20
    if (first === 0x64 && (second === 0x38 || second === 0x39 || second >= 0x61)) {
      this.suspect = true
    }
    return at + 5
  }

  /** Reads a number or a literal that begins with `byte`; -1 if it is none. */
  #scalar(at: number, byte: number): number {
    const view = this.#view
    if (byte >= 0x31 && byte <= 0x39) {
      // A plain integer is what most numbers are.
      const bytes = this.#bytes
      let end = at + 1
      let next = bytes[end]!
      while (next >= 0x30 && next <= 0x39) next = bytes[++end]!
      return next === 0x2e || (next | 0x20) === 0x65 ? numberEnd(bytes, at) : end
    }
    if (byte === 0x74) return view.getInt32(at, true) === TRUE ? at + 4 : -1
    if (byte === 0x6e) return view.getInt32(at, true) === NULL ? at + 4 : -1
    if (byte === 0x66) return view.getInt32(at + 1, true) === ALSE ? at + 5 : -1
    return numberEnd(this.#bytes, at)
  }

  #deepen(): Uint8Array<ArrayBuffer> {
    this.#closers = grown(this.#closers)
    this.#keyBase = grown(this.#keyBase)
    this.#keyBloom = grown(this.#keyBloom)
    return this.#closers
  }

  #growMembers(): Int32Array<ArrayBuffer> {
    this.members = grown(this.members)
    return this.members
  }
}

/**
 * The high bits of the bytes of `word` that end a run of plain string content: quote, backslash or a
 * control byte. Exact for the lowest such byte, which is the first in memory.
 */
export function stopsIn(word: number): number {
  const quotesAndControls = (word ^ 0x02020202) - 0x21212121
  const backslashes = (word ^ 0x5c5c5c5c) - 0x01010101
  return (quotesAndControls | backslashes) & ~word & 0x80808080
}

/** White space inside a line; 0x0A ends the line and is none. */
function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}

function isHex(byte: number): boolean {
  return (byte >= 0x30 && byte <= 0x39) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
}

const SIMPLE_ESCAPE = new Uint8Array(256)
for (const character of '"\\/bfnrt') SIMPLE_ESCAPE[character.charCodeAt(0)] = 1

function grown<T extends Uint8Array<ArrayBuffer> | Int32Array<ArrayBuffer>>(array: T): T {
  const larger = new (array.constructor as new (length: number) => T)(array.length * 2)
  larger.set(array)
  return larger
}
