import { ByteBuilder } from './byte-builder.ts'

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

/** What is written for a byte that may not stand in a string as it is. */
const ESCAPES = Array.from({ length: 0x60 }, (_, byte) =>
  byte < 0x20 || byte === QUOTE || byte === BACKSLASH
    ? Buffer.from(JSON.stringify(String.fromCharCode(byte)).slice(1, -1))
    : undefined,
)

/**
 * Writes the values of a column store as JSON text. Text comes as bytes and is never decoded: what is
 * no UTF-8 stays so, for the reader to find. 64-bit integers keep their digits, dates become ISO text.
 * Members without a value are left out, since a column store cannot tell null from missing.
 */
export class JsonBytes extends ByteBuilder {
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
    else this.object(Object.entries(value))
  }

  object(members: Iterable<readonly [name: string, value: unknown]>): void {
    let separator = 0x7b
    for (const [name, value] of members) {
      if (value === null || value === undefined) continue
      this.byte(separator)
      separator = 0x2c
      this.value(name)
      this.byte(0x3a)
      this.value(value)
    }
    if (separator === 0x7b) this.byte(0x7b)
    this.byte(0x7d)
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
    this.reserve(text.length + 2)
    this.bytes[this.length++] = QUOTE
    let plainFrom = 0
    for (let at = 0; at < text.length; at++) {
      const escape = ESCAPES[text[at]!]
      if (escape === undefined) continue
      this.append(text, plainFrom, at)
      this.append(escape)
      plainFrom = at + 1
    }
    this.append(text, plainFrom)
    this.byte(QUOTE)
  }
}

function isArrayLike(value: object): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView))
}
