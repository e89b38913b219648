import { grammarProblem } from '../../core/json-problem.ts'
import { JsonScanner, PADDING } from '../../core/json-scan.ts'
import { lineKey } from '../../core/key.ts'
import type { FailedRecord } from '../../core/output-record.ts'
import { problemText } from '../../core/problem-text.ts'
import { type InputRecord, type RecordRules, readRecord } from '../../core/record.ts'
import { RecordError } from '../../core/record-error.ts'
import { LONGEST_LINE, type TextLine } from '../../streams/split-lines.ts'

/** A line of input on its way: a record to be asked, or one that cannot be. */
export type Entry = { file: string; line: number } & (
  | { kind: 'record'; record: InputRecord }
  | { kind: 'unusable'; key: string; code: string; message: string; input: FailedRecord['input'] }
  | { kind: 'blank' }
)

type Unusable = Omit<Extract<Entry, { kind: 'unusable' }>, 'file' | 'line'>

/** A text that is longer may be no string any more as JSON, in which a character may be six. */
const LONGEST_TEXT = 64 * 1024 * 1024
const MIB = 1024 * 1024

const SPACE = 0x20
const BOM = '\ufeff'

/** Reads lines as records, by the one scanner. */
export class EntryReader {
  #rules: RecordRules
  #scanner = new JsonScanner()
  #bytes = Buffer.alloc(64 * 1024)

  constructor(rules: RecordRules) {
    this.#rules = rules
  }

  read({ file, line, text, bytes: raw, longKey }: TextLine): Entry {
    if (longKey !== undefined) return { file, line, ...tooLong(longKey) }
    if (raw !== undefined) return { file, line, ...this.#noUtf8(raw) }
    const json = text.startsWith(BOM) ? text.slice(1) : text
    const end = this.#load(json)
    const bytes = this.#bytes
    let start = 0
    while (start < end && bytes[start]! <= SPACE) start++
    if (start === end) return { kind: 'blank', file, line }
    const valueEnd = this.#scanner.scan(start, end) ? trimmedEnd(bytes, end) : -1
    if (valueEnd < 0) return { file, line, ...this.#noJson(json, end) }
    try {
      const record = readRecord(
        this.#scanner,
        bytes,
        { start, end: valueEnd },
        this.#rules,
        start === 0 && valueEnd === end ? json : undefined,
      )
      return { kind: 'record', file, line, record }
    } catch (error) {
      if (!(error instanceof RecordError)) throw error
      const { code, message, standsFor } = error
      const key = standsFor?.idToken ?? this.#keyOf(start, valueEnd)
      const input = standsFor?.input ?? { json: bytes.toString('utf8', start, valueEnd) }
      return { kind: 'unusable', file, line, key, code, message, input }
    }
  }

  /** Puts the text into the buffer with the sentinel behind it. */
  #load(text: string): number {
    const needed = text.length * 3 + PADDING
    if (needed > this.#bytes.length) this.#bytes = Buffer.alloc(needed * 2)
    const end = this.#bytes.write(text, 0)
    this.#bytes[end] = 0x0a
    this.#scanner.use(this.#bytes)
    return end
  }

  /** The token that names a record which cannot be asked. */
  #keyOf(start: number, end: number): string {
    this.#scanner.value(start)
    const range = this.#rules.key.find(this.#scanner, this.#bytes)
    if (range === undefined) return JSON.stringify(lineKey(this.#bytes, start, end))
    return this.#bytes.toString('utf8', range.start, range.end)
  }

  #noJson(text: string, end: number): Unusable {
    const problem = grammarProblem(this.#bytes, 0, end, true)
    const what = problem ? problemText(problem.code, this.#bytes, problem.at, end) : 'no JSON'
    const column = (problem?.at ?? 0) + 1
    return {
      kind: 'unusable',
      key: JSON.stringify(lineKey(this.#bytes, 0, end)),
      code: 'not-jsonl',
      message: `column ${column}: ${what}`,
      input: end > LONGEST_TEXT ? { base64: this.#bytes.toString('base64', 0, end) } : { text },
    }
  }

  #noUtf8(bytes: Buffer): Unusable {
    const base64 = bytes.toString('base64')
    return {
      kind: 'unusable',
      key: JSON.stringify(lineKey(bytes, 0, bytes.length)),
      code: 'not-jsonl',
      message: 'the line is no UTF-8',
      input: { base64 },
    }
  }
}

/** A failure cannot hold the line either. */
function tooLong(key: string): Unusable {
  return {
    kind: 'unusable',
    key: JSON.stringify(key),
    code: 'line-too-long',
    message: `the line is longer than ${LONGEST_LINE / MIB} MiB`,
    input: { text: '' },
  }
}

function trimmedEnd(bytes: Buffer, end: number): number {
  let at = end
  while (bytes[at - 1]! <= SPACE) at--
  return at
}
