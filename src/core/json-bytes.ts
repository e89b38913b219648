import { ByteBuilder } from './byte-builder.ts'
import { stopsIn } from './json-scan.ts'
import { WordView } from './word-view.ts'

/** JSON text that stands for itself. */
export class RawJson {
  readonly bytes: Uint8Array

  constructor(bytes: Uint8Array) {
    this.bytes = bytes
  }
}

const NULL = Buffer.from('null')
const TRUE = Buffer.from('true')
const FALSE = Buffer.from('false')
const QUOTE = 0x22
const BACKSLASH = 0x5c

/** What follows the backslash for a byte that may not stand in a string as it is; else 0. */
const ESCAPES = new Uint8Array(256).map((_, byte) => {
  if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) return 0
  return JSON.stringify(String.fromCharCode(byte)).charCodeAt(2)
})
const WORD = 4
const LETTER_U = 0x75
const HEX_DIGITS = Buffer.from('0123456789abcdef')

/**
 * Writes the values of a column store as JSON text. Text comes as bytes and is never decoded: what is
 * no UTF-8 stays so, for the reader to find. 64-bit integers keep their digits, dates become ISO text.
 * Members without a value are left out, since a column store cannot tell null from missing.
 */
export class JsonBytes extends ByteBuilder {
  #keys = new Map<string, Buffer>()
  #view = new WordView()

  value(value: unknown): void {
    if (value instanceof Uint8Array) this.#text(value)
    else if (typeof value === 'string') this.append(Buffer.from(JSON.stringify(value)))
    else if (value === null || value === undefined) this.append(NULL)
    else if (typeof value === 'boolean') this.append(value ? TRUE : FALSE)
    else if (typeof value === 'bigint') this.append(Buffer.from(String(value)))
    else if (typeof value === 'number') this.append(Buffer.from(JSON.stringify(value)))
    else if (value instanceof RawJson) this.append(value.bytes)
    else if (value instanceof Date) this.append(Buffer.from(JSON.stringify(value)))
    else if (isArrayLike(value)) this.#array(value)
    else this.#object(value as Record<string, unknown>)
  }

  object(members: Iterable<readonly [name: string, value: unknown]>): void {
    const begun = this.length
    for (const [name, value] of members) this.#member(begun, name, value)
    this.#closeObject(begun)
  }

  #object(members: Record<string, unknown>): void {
    const begun = this.length
    for (const name of Object.keys(members)) this.#member(begun, name, members[name])
    this.#closeObject(begun)
  }

  #member(begun: number, name: string, value: unknown): void {
    if (value === null || value === undefined) return
    this.byte(this.length === begun ? 0x7b : 0x2c)
    this.append(this.#key(name))
    this.value(value)
  }

  #closeObject(begun: number): void {
    if (this.length === begun) this.byte(0x7b)
    this.byte(0x7d)
  }

  /** A key and its colon; the names of a file are few. */
  #key(name: string): Buffer {
    let key = this.#keys.get(name)
    if (key === undefined) {
      key = Buffer.from(`${JSON.stringify(name)}:`)
      this.#keys.set(name, key)
    }
    return key
  }

  #array(elements: ArrayLike<unknown>): void {
    this.byte(0x5b)
    for (let index = 0; index < elements.length; index++) {
      if (index > 0) this.byte(0x2c)
      this.value(elements[index])
    }
    this.byte(0x5d)
  }

  #text(text: Uint8Array): void {
    const { length } = text
    // Every byte has room for itself and a backslash, and a word is written as a whole.
    this.reserve(length * 2 + WORD + 2)
    const source = new DataView(text.buffer, text.byteOffset, length)
    let target = this.#view.of(this.bytes)
    let to = this.length
    this.bytes[to++] = QUOTE
    for (let at = 0; at < length; ) {
      if (at + WORD <= length) {
        const word = source.getInt32(at, true)
        target.setInt32(to, word, true)
        const stops = stopsIn(word)
        if (stops === 0) {
          at += WORD
          to += WORD
          continue
        }
        const plain = (24 - Math.clz32(stops & -stops)) >> 3
        at += plain
        to += plain
      }
      to = this.#escaped(text[at++]!, to, length - at)
      target = this.#view.of(this.bytes)
    }
    this.bytes[to++] = QUOTE
    this.length = to
  }

  /** Writes a byte of a text at `to`, more of them to come; returns where the next one goes. */
  #escaped(byte: number, start: number, more: number): number {
    let to = start
    const letter = ESCAPES[byte]!
    if (letter === 0) {
      this.bytes[to++] = byte
      return to
    }
    this.bytes[to++] = BACKSLASH
    this.bytes[to++] = letter
    if (letter !== LETTER_U) return to
    // Four more than the two that every byte has room for.
    this.length = to
    this.reserve((more + 1) * 2 + WORD + 5)
    this.bytes[to++] = 0x30
    this.bytes[to++] = 0x30
    this.bytes[to++] = HEX_DIGITS[byte >> 4]!
    this.bytes[to++] = HEX_DIGITS[byte & 15]!
    return to
  }
}

function isArrayLike(value: object): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))
}
