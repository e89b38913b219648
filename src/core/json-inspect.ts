import { murmur128 } from './hash.ts'
import { sameBytes, stringText } from './json-string.ts'

/** What a line may still have whose grammar holds; offsets in the buffer, -1 for none. */
export interface Inspection {
  /** The first key that its object already had, spelt the same after decoding escapes. */
  duplicateKey: number
  /** The first `\ud800` to `\udfff` escape without its other half. */
  loneSurrogate: number
  /** The first bracket or brace that nests deeper than allowed. */
  tooDeep: number
}

/**
 * The second look at a line whose grammar holds. Memory is bounded by the keys of the objects that
 * are open: they lie on one stack, an object's own on top of its parents'.
 */
export function inspectLine(
  bytes: Uint8Array,
  start: number,
  end: number,
  maxDepth: number,
): Inspection {
  const found: Inspection = { duplicateKey: -1, loneSurrogate: -1, tooDeep: -1 }
  const keys = new KeyStack(bytes)
  const bases: number[] = []
  let keyNext = false
  let at = start
  while (at < end) {
    const byte = bytes[at]!
    if (byte === 0x22) {
      const close = stringEnd(bytes, at, found)
      if (keyNext) keys.push(at, close)
      keyNext = false
      at = close
      continue
    }
    if (byte === 0x7b || byte === 0x5b) {
      bases.push(byte === 0x7b ? keys.size : -1)
      keyNext = byte === 0x7b
      if (bases.length > maxDepth && found.tooDeep < 0) found.tooDeep = at
    } else if (byte === 0x7d || byte === 0x5d) {
      const base = bases.pop()!
      if (base >= 0) found.duplicateKey = earlier(found.duplicateKey, keys.close(base))
      keyNext = false
    } else if (byte === 0x2c) {
      keyNext = (bases.at(-1) ?? -1) >= 0
    }
    at++
  }
  return found
}

/** The keys of the open objects: their hashes and places. */
class KeyStack {
  size = 0
  #bytes: Uint8Array
  #hashes = new Int32Array(256)
  #starts = new Int32Array(256)
  #ends = new Int32Array(256)
  #hash = new Int32Array(4)

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  push(start: number, end: number): void {
    if (this.size === this.#hashes.length) this.#grow()
    const text = stringText(this.#bytes, start, end)
    murmur128(text.bytes, text.start, text.end, 0, this.#hash)
    this.#hashes[this.size] = this.#hash[0]!
    this.#starts[this.size] = start
    this.#ends[this.size] = end
    this.size++
  }

  /** Drops the keys from `base` on; returns where the first repeated one of them begins, or -1. */
  close(base: number): number {
    const count = this.size - base
    this.size = base
    if (count < 2) return -1
    let capacity = 4
    while (capacity < count * 2) capacity *= 2
    const table = new Int32Array(capacity)
    for (let key = base; key < base + count; key++) {
      if (this.#insert(table, key)) return this.#starts[key]!
    }
    return -1
  }

  /** Puts a key into the table of its object; true where an equal one is there already. */
  #insert(table: Int32Array, key: number): boolean {
    const mask = table.length - 1
    let slot = this.#hashes[key]! & mask
    for (; table[slot] !== 0; slot = (slot + 1) & mask) {
      const other = table[slot]! - 1
      if (this.#hashes[other] === this.#hashes[key] && this.#equal(other, key)) return true
    }
    table[slot] = key + 1
    return false
  }

  #equal(a: number, b: number): boolean {
    return sameBytes(
      stringText(this.#bytes, this.#starts[a]!, this.#ends[a]!),
      stringText(this.#bytes, this.#starts[b]!, this.#ends[b]!),
    )
  }

  #grow(): void {
    const larger = (old: Int32Array<ArrayBuffer>): Int32Array<ArrayBuffer> => {
      const array = new Int32Array(old.length * 2)
      array.set(old)
      return array
    }
    this.#hashes = larger(this.#hashes)
    this.#starts = larger(this.#starts)
    this.#ends = larger(this.#ends)
  }
}

/** The offset behind the string at `at`; notes the first lone surrogate in it. */
function stringEnd(bytes: Uint8Array, start: number, found: Inspection): number {
  let high = -1
  let at = start + 1
  for (;;) {
    const byte = bytes[at]!
    const unit = byte === 0x5c && bytes[at + 1] === 0x75 ? hexAt(bytes, at + 2) : -1
    const isLow = unit >= 0xdc00 && unit <= 0xdfff
    if (high >= 0 && !isLow) found.loneSurrogate = earlier(found.loneSurrogate, high)
    else if (high < 0 && isLow) found.loneSurrogate = earlier(found.loneSurrogate, at)
    high = unit >= 0xd800 && unit <= 0xdbff ? at : -1
    if (byte === 0x22) return at + 1
    at += unit >= 0 ? 6 : byte === 0x5c ? 2 : 1
  }
}

function hexAt(bytes: Uint8Array, at: number): number {
  let value = 0
  for (let i = 0; i < 4; i++) {
    const byte = bytes[at + i]!
    value = value * 16 + (byte <= 0x39 ? byte - 0x30 : (byte | 0x20) - 0x57)
  }
  return value
}

function earlier(a: number, b: number): number {
  if (a < 0) return b
  return b < 0 ? a : Math.min(a, b)
}
