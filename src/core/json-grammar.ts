/**
 * The slow pass: RFC 8259 and UTF-8 byte by byte, resumable at any byte, for lines that the fast
 * scanner refused. It stops at the first byte with which the text can no longer be completed.
 */

/** Where the automaton stands between two bytes. */
export type GrammarState =
  | 'value' // a value must begin
  | 'first-element' // a value, or the end of an empty array
  | 'first-key' // a key, or the end of an empty object
  | 'key'
  | 'colon'
  | 'after' // inside a container, behind a value: comma or end
  | 'string'
  | 'escape'
  | 'hex'
  | 'utf8' // inside a multi-byte sequence of a string
  | 'literal'
  | 'minus'
  | 'zero'
  | 'integer'
  | 'point'
  | 'fraction'
  | 'exponent'
  | 'exponent-sign'
  | 'exponent-digits'
  | 'touching' // a complete bare literal whose end no delimiter has confirmed yet
  | 'done'

const LITERALS: Record<number, string> = { 116: 'true', 102: 'false', 110: 'null' }

export class JsonGrammar {
  state: GrammarState = 'value'
  /** Offset of the first byte of the multi-byte sequence being read; -1 outside one. */
  sequenceStart = -1
  /** Offsets of the string that is open or was read last, and whether it is a key. */
  stringStart = -1
  stringIsKey = false
  /** Offset behind the last complete member at top level of the value, for salvage. */
  depth = 0

  #isObject = new Uint8Array(64)
  #hexLeft = 0
  #literal = ''
  #literalAt = 0
  #continuations = 0
  #low = 0x80
  #high = 0xbf

  /**
   * Reads the bytes from `start` to `end`.
   *
   * @returns the offset of the first byte that cannot follow what was read, or -1. For a broken
   *   multi-byte sequence `sequenceStart` tells where it began.
   */
  feed(bytes: Uint8Array, start: number, end: number): number {
    for (let at = start; at < end; at++) {
      if (!this.#step(bytes[at]!, at)) return at
    }
    return -1
  }

  /** Whether what was read is one whole value. A bare number may still go on. */
  get complete(): boolean {
    return this.state === 'done' || this.state === 'touching' || this.openNumber
  }

  /** Whether what was read is a whole value that further digits could make another one. */
  get openNumber(): boolean {
    return this.depth === 0 && isNumberEnd(this.state)
  }

  /** Whether the innermost open container is an object. */
  get inObject(): boolean {
    return this.depth > 0 && this.#isObject[this.depth] === 1
  }

  #step(byte: number, at: number): boolean {
    switch (this.state) {
      case 'string':
        return this.#inString(byte, at)
      case 'utf8':
        return this.#continuation(byte)
      case 'escape':
        return this.#inEscape(byte)
      case 'hex':
        if (!isHex(byte)) return false
        if (--this.#hexLeft === 0) this.state = 'string'
        return true
      case 'literal':
        if (byte !== this.#literal.charCodeAt(this.#literalAt)) return false
        if (++this.#literalAt === this.#literal.length) {
          this.state = this.depth === 0 ? 'touching' : 'after'
        }
        return true
      case 'minus':
      case 'zero':
      case 'integer':
      case 'point':
      case 'fraction':
      case 'exponent':
      case 'exponent-sign':
      case 'exponent-digits':
        return this.#inNumber(byte, at)
      case 'touching':
        if (!isSpace(byte)) return false
        this.state = 'done'
        return true
      default:
        return isSpace(byte) || this.#structural(byte, at)
    }
  }

  #structural(byte: number, at: number): boolean {
    switch (this.state) {
      case 'value':
        return this.#valueStart(byte, at)
      case 'first-element':
        return byte === 0x5d ? this.#close() : this.#valueStart(byte, at)
      case 'first-key':
        return byte === 0x7d ? this.#close() : this.#keyStart(byte, at)
      case 'key':
        return this.#keyStart(byte, at)
      case 'colon':
        if (byte !== 0x3a) return false
        this.state = 'value'
        return true
      case 'after':
        if (byte === 0x2c) {
          this.state = this.inObject ? 'key' : 'value'
          return true
        }
        return byte === (this.inObject ? 0x7d : 0x5d) && this.#close()
      default:
        return false
    }
  }

  #valueStart(byte: number, at: number): boolean {
    if (byte === 0x22) return this.#openString(at, false)
    if (byte === 0x7b) return this.#open(1, 'first-key')
    if (byte === 0x5b) return this.#open(0, 'first-element')
    if (byte === 0x2d) this.state = 'minus'
    else if (byte === 0x30) this.state = 'zero'
    else if (isDigit(byte)) this.state = 'integer'
    else {
      const literal = LITERALS[byte]
      if (literal === undefined) return false
      this.#literal = literal
      this.#literalAt = 1
      this.state = 'literal'
    }
    return true
  }

  #keyStart(byte: number, at: number): boolean {
    return byte === 0x22 && this.#openString(at, true)
  }

  #openString(at: number, isKey: boolean): boolean {
    this.stringStart = at
    this.stringIsKey = isKey
    this.state = 'string'
    return true
  }

  #open(isObject: 0 | 1, state: GrammarState): boolean {
    this.depth++
    if (this.depth === this.#isObject.length) {
      const larger = new Uint8Array(this.depth * 2)
      larger.set(this.#isObject)
      this.#isObject = larger
    }
    this.#isObject[this.depth] = isObject
    this.state = state
    return true
  }

  #close(): boolean {
    this.depth--
    this.state = this.depth === 0 ? 'done' : 'after'
    return true
  }

  #inString(byte: number, at: number): boolean {
    if (byte === 0x22) {
      this.state = this.stringIsKey ? 'colon' : this.depth === 0 ? 'done' : 'after'
    } else if (byte === 0x5c) this.state = 'escape'
    else if (byte < 0x20) return false
    else if (byte >= 0x80) {
      this.sequenceStart = at
      return this.#lead(byte)
    }
    return true
  }

  #inEscape(byte: number): boolean {
    if (byte === 0x75) {
      this.#hexLeft = 4
      this.state = 'hex'
      return true
    }
    if (!'"\\/bfnrt'.includes(String.fromCharCode(byte))) return false
    this.state = 'string'
    return true
  }

  /** The lead byte of a sequence: Unicode 15, table 3-7 (no overlong forms, no surrogates). */
  #lead(byte: number): boolean {
    this.#low = byte === 0xe0 ? 0xa0 : byte === 0xf0 ? 0x90 : 0x80
    this.#high = byte === 0xed ? 0x9f : byte === 0xf4 ? 0x8f : 0xbf
    if (byte >= 0xc2 && byte <= 0xdf) this.#continuations = 1
    else if (byte >= 0xe0 && byte <= 0xef) this.#continuations = 2
    else if (byte >= 0xf0 && byte <= 0xf4) this.#continuations = 3
    else return false
    this.state = 'utf8'
    return true
  }

  #continuation(byte: number): boolean {
    if (byte < this.#low || byte > this.#high) return false
    this.#low = 0x80
    this.#high = 0xbf
    if (--this.#continuations === 0) {
      this.state = 'string'
      this.sequenceStart = -1
    }
    return true
  }

  #inNumber(byte: number, at: number): boolean {
    const next = nextInNumber(this.state, byte)
    if (next !== undefined) {
      this.state = next
      return true
    }
    if (!isNumberEnd(this.state)) return false
    if (this.depth === 0) {
      if (!isSpace(byte)) return false
      this.state = 'done'
      return true
    }
    this.state = 'after'
    return isSpace(byte) || this.#structural(byte, at)
  }
}

function nextInNumber(state: GrammarState, byte: number): GrammarState | undefined {
  const digit = isDigit(byte)
  switch (state) {
    case 'minus':
      return byte === 0x30 ? 'zero' : digit ? 'integer' : undefined
    case 'zero':
    case 'integer':
      if (digit && state === 'integer') return 'integer'
      if (byte === 0x2e) return 'point'
      return (byte | 0x20) === 0x65 ? 'exponent' : undefined
    case 'point':
      return digit ? 'fraction' : undefined
    case 'fraction':
      if (digit) return 'fraction'
      return (byte | 0x20) === 0x65 ? 'exponent' : undefined
    case 'exponent':
      if (byte === 0x2b || byte === 0x2d) return 'exponent-sign'
      return digit ? 'exponent-digits' : undefined
    default:
      return digit ? 'exponent-digits' : undefined
  }
}

function isNumberEnd(state: GrammarState): boolean {
  return (
    state === 'zero' || state === 'integer' || state === 'fraction' || state === 'exponent-digits'
  )
}

/** White space of RFC 8259; a line feed can only come where text of several lines is fed. */
function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function isDigit(byte: number): boolean {
  return byte >= 0x30 && byte <= 0x39
}

function isHex(byte: number): boolean {
  return isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66)
}
