import { isUtf8 } from 'node:buffer'
import { JsonGrammar } from '../../src/core/json-grammar.ts'
import { grammarProblem } from '../../src/core/json-problem.ts'
import { JsonScanner, PADDING } from '../../src/core/json-scan.ts'

/** Bytes with a line feed and the scanner's padding behind them; what lies there must not matter. */
export function padded(bytes: Uint8Array, filler = 0x20): Buffer {
  const buffer = Buffer.alloc(bytes.length + 1 + PADDING, filler)
  buffer.set(bytes)
  buffer[bytes.length] = 0x0a
  return buffer
}

export function fromLatin1(text: string): Buffer {
  return Buffer.from(text, 'latin1')
}

/** The fast scanner's answer for one line. */
export function fastAccepts(bytes: Uint8Array, filler?: number): boolean {
  const scanner = new JsonScanner()
  scanner.use(padded(bytes, filler))
  return isUtf8(bytes) && scanner.scan(0, bytes.length)
}

/** The slow pass's answer for one line. */
export function slowAccepts(bytes: Uint8Array): boolean {
  return grammarProblem(bytes, 0, bytes.length, true) === undefined
}

/** What Node's own JSON and UTF-8 decoders say. */
export function nodeAccepts(bytes: Uint8Array): boolean {
  try {
    JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
    return true
  } catch {
    return false
  }
}

/** The state in which the grammar stands behind all bytes, or undefined where it stopped. */
export function grammarState(bytes: Uint8Array): string | undefined {
  const grammar = new JsonGrammar()
  return grammar.feed(bytes, 0, bytes.length) < 0 ? grammar.state : undefined
}
