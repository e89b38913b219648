import type { Context } from '../cli/command.ts'
import {
  ANSWER_COLUMNS,
  type AnswerTable,
  fallsShort,
  isAnswer,
  isKeyed,
  lookAtAnswer,
} from '../core/answer-look.ts'
import { SHORTCOMINGS } from '../core/completed.ts'
import type { KeyRule } from '../core/key.ts'
import { LineJudge } from '../core/line-judge.ts'
import { EXIT, type Place, ToolError } from '../core/tool-error.ts'
import { expandGlob } from '../files/glob.ts'
import type { Input } from '../files/input.ts'
import { type LineBlock, lineBlocks } from '../streams/line-blocks.ts'
import { InterruptibleReader, openInterruptible, refuseInputs } from './inputs.ts'
import {
  blocksFor,
  isWorthAThread,
  type LookedBlock,
  lookedOver,
  lookedOverHere,
  notLookedOver,
} from './look-ahead.ts'
import { contentOf, eachLine, RECORD_POLICY } from './record-lines.ts'

/** What a line is of which a part may be whole records. */
const GLUED: ReadonlySet<string> = new Set(['multiple-values', 'syntax', 'truncated'])

/** What files of answers hold, in lines. */
export interface CompletedCounts {
  files: number
  /** Answers: they complete their key. */
  completed: number
  /** Traces of failures. */
  failed: number
  /** Lines that are no record, or have no key. */
  unusable: number
  /** Answers with a shortcoming, also those that are to be done again. */
  length: number
  content_filter: number
  empty: number
}

export function noCompletedCounts(): CompletedCounts {
  return {
    files: 0,
    completed: 0,
    failed: 0,
    unusable: 0,
    length: 0,
    content_filter: 0,
    empty: 0,
  }
}

export interface CompletedOptions {
  rule: KeyRule
  /** What the lines are added to. */
  counts: CompletedCounts
  /** Shortcomings that make an answer count as none. */
  redo: ReadonlySet<string>
  /** Told how many lines a large file has by its size, before the first answer. */
  onExpected?: (lines: number) => void
  /** Gets the fingerprint of every answer's key, four words from `from` on. */
  onAnswer?: (words: Int32Array, from: number) => void
  /** Gets every answer with its line, for which a second thread cannot help. */
  onLine?: (fingerprint: Int32Array, judge: LineJudge, bytes: Buffer, start: number) => void
  /** Told which file is read next. */
  onFile?: (file: string) => void
}

/**
 * Reads files of answers, once each even where several patterns name them, to the size it has now, so that what the same pipeline appends to
 * them is not seen. A missing file is an empty one, with a warning.
 *
 * @param patterns a file or a quoted glob each
 * @returns 1 as exit code where unusable lines were named
 * @throws Interrupted when a signal came
 * @throws ToolError exit code 2 for a file that has whole lines but not one usable record: to take
 *   it for "nothing done" would pay for everything again
 */
export async function readCompleted(
  context: Context,
  patterns: readonly string[],
  options: CompletedOptions,
): Promise<number> {
  const reader = new CompletedReader(context, options)
  for (const pattern of patterns) {
    const files = await expandGlob(pattern)
    if (files.length === 0) reader.missing(pattern)
    for (const file of files) {
      if (file === pattern || !isRemovedFile(file)) await reader.read(file)
    }
  }
  return options.counts.unusable > 0 ? EXIT.data : EXIT.ok
}

/**
 * Refuses to write to a file of answers that is read.
 *
 * @param files names and globs
 * @throws ToolError
 */
export async function refuseCompleted(
  context: Context,
  outputs: readonly (string | undefined)[],
  files: readonly string[],
): Promise<void> {
  for (const file of files) {
    refuseInputs(context, outputs, file === '-' ? [file] : await expandGlob(file))
  }
}

/** What repair-truncated took out of a file lies beside it, and a glob of answers finds it too. */
function isRemovedFile(file: string): boolean {
  return file.endsWith('.removed.jsonl')
}

class CompletedReader {
  #context: Context
  #options: CompletedOptions
  #judge = new LineJudge(RECORD_POLICY)
  #fingerprint = new Int32Array(4)
  /** Device and inode of the files that were read. */
  #read = new Set<string>()
  #wholeLines = 0
  #usable = 0

  constructor(context: Context, options: CompletedOptions) {
    this.#context = context
    this.#options = options
  }

  missing(file: string): void {
    this.#context.report.warning('no such file: nothing is completed yet', 'no-file', { file })
  }

  async read(file: string): Promise<void> {
    const input = await openInterruptible(this.#context, file, true).catch((error: unknown) => {
      if (!(error instanceof ToolError) || !error.message.includes('no such file')) throw error
      this.missing(file)
    })
    if (input === undefined) return
    if (this.#isKnown(input)) return input.close()
    this.#options.onFile?.(file)
    this.#options.counts.files++
    this.#wholeLines = this.#usable = 0
    let line = 1
    try {
      for await (const { block, result } of this.#looked(input)) {
        if (line === 1 && result !== undefined) {
          const lines = result.length / ANSWER_COLUMNS
          this.#options.onExpected?.(lines * (input.stats.size / block.end))
        }
        line =
          result === undefined ? this.#block(file, block, line) : this.#answers(file, result, line)
      }
    } catch (error) {
      if (!(error instanceof ToolError) || error.exitCode !== EXIT.data) throw error
      this.#unusable(error.message, error.code, { file })
    } finally {
      await input.close()
    }
    if (this.#wholeLines > 0 && this.#usable === 0) {
      throw new ToolError('no-usable-record', noUsableRecord(this.#options.rule), {
        place: { file },
      })
    }
  }

  #looked(input: Input): AsyncIterable<LookedBlock<AnswerTable | undefined>> {
    const { field } = this.#options.rule
    const reader = new InterruptibleReader(input.reader, this.#context)
    const blocks = lineBlocks(reader, blocksFor(input))
    if (this.#options.onLine !== undefined) return notLookedOver(blocks)
    const order = { kind: 'answers', policy: RECORD_POLICY, key: field?.name } as const
    return isWorthAThread(input) ? lookedOver(blocks, order) : lookedOverHere(blocks, order)
  }

  /** Takes what was told of the lines of a block before. */
  #answers(file: string, table: AnswerTable, firstLine: number): number {
    let line = firstLine
    for (let row = 0; row < table.length; row += ANSWER_COLUMNS, line++) {
      if (this.#count(table[row]!, file, line)) this.#options.onAnswer?.(table, row + 1)
    }
    return line
  }

  #isKnown({ stats }: Input): boolean {
    const identity = `${stats.dev}:${stats.ino}`
    const isKnown = stats.isFile() && this.#read.has(identity)
    this.#read.add(identity)
    return isKnown
  }

  #block(file: string, block: LineBlock, firstLine: number): number {
    return eachLine(this.#judge, block, firstLine, (start, clean, line) =>
      this.#line(block.bytes, start, clean, { file, line }),
    )
  }

  #line(bytes: Buffer, lineStart: number, clean: boolean, place: Place): void {
    const judge = this.#judge
    const content = clean
      ? { start: lineStart, end: judge.end }
      : contentOf(judge, bytes, lineStart)
    if (content === undefined) {
      // Framing between records, or what a killed writer leaves: neither is a lost answer.
      if (judge.problems[0]?.code === 'blank') return
      if (judge.terminated) this.#wholeLines++
      if (judge.terminated) return this.#unusable('no JSON', judge.problems[0]!.code, place)
      const message = 'the last line is torn and does not count'
      return this.#context.report.warning(message, 'truncated', { ...place, column: 1 })
    }
    const { rule, onAnswer, onLine } = this.#options
    const fingerprint = this.#fingerprint
    const told = lookAtAnswer(rule, judge, bytes, content, fingerprint, 0)
    if (!this.#count(told, place.file!, place.line!)) return
    onAnswer?.(fingerprint, 0)
    onLine?.(fingerprint, judge, bytes, content.start)
  }

  /** Counts a record; returns whether it completes its key. */
  #count(told: number, file: string, line: number): boolean {
    const { counts } = this.#options
    this.#wholeLines++
    if (!isKeyed(told)) {
      this.#unusable('a record without a key', 'no-key', { file, line })
      return false
    }
    this.#usable++
    if (!isAnswer(told)) {
      counts.failed++
      return false
    }
    let isDone = true
    for (const [index, word] of SHORTCOMINGS.entries()) {
      if (!fallsShort(told, index)) continue
      counts[word]++
      if (this.#options.redo.has(word)) isDone = false
    }
    if (isDone) counts.completed++
    return isDone
  }

  #unusable(message: string, code: string, place: Place): void {
    this.#options.counts.unusable++
    const ofLine = place.line === undefined ? place : { ...place, column: 1 }
    // Records glued onto each other or onto a torn one.
    const way = GLUED.has(code) ? '; repair-truncated may find records in it' : ''
    this.#context.report.error(`this line completes nothing: ${message}${way}`, code, ofLine)
  }
}

function noUsableRecord(rule: KeyRule): string {
  const key = rule.field === undefined ? 'a key' : `a field '${rule.field.name}'`
  return `not one record with ${key} in it: is this the file of answers? (nothing was done)`
}
