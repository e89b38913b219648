import assert from 'node:assert/strict'
import { isUtf8 } from 'node:buffer'
import { JsonGrammar } from '../../src/core/json-grammar.ts'
import { inspectLine } from '../../src/core/json-inspect.ts'
import { grammarProblem } from '../../src/core/json-problem.ts'
import { JsonScanner, PADDING } from '../../src/core/json-scan.ts'
import { kernelBytes } from '../../src/core/kernel.ts'

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

const KERNEL_SIZE = 64 * 1024
const kernel = kernelBytes(KERNEL_SIZE)!

/** The fast scanner's answer for one line, which is the same wherever the line lies. */
export function fastAccepts(bytes: Uint8Array, filler?: number): boolean {
  const line = padded(bytes, filler)
  const scanner = new JsonScanner()
  scanner.use(line)
  const accepts = scanner.scan(0, bytes.length)
  const { suspect, memberCount } = scanner
  const plain = new JsonScanner(false)
  plain.use(line)
  assert.equal(plain.scan(0, bytes.length), accepts, 'a scanner that compares no keys agrees')
  if (accepts) assert.equal(plain.memberCount, memberCount)
  if (line.length <= KERNEL_SIZE) {
    kernel.set(line)
    scanner.use(kernel)
    assert.equal(scanner.scan(0, bytes.length), accepts, 'the kernel agrees')
    if (accepts) assertSuspicion(line, bytes.length, suspect, scanner.suspect)
  }
  return isUtf8(bytes) && accepts
}

/** The kernel suspects what the loop suspects, but no whole surrogate pair. */
function assertSuspicion(line: Buffer, end: number, loop: boolean, byKernel: boolean): void {
  if (byKernel === loop) return
  assert.equal(loop, true, 'the kernel suspects more')
  const { duplicateKey, loneSurrogate } = inspectLine(line, 0, end, 10_000)
  assert.deepEqual([duplicateKey, loneSurrogate], [-1, -1], 'the kernel suspects too little')
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
