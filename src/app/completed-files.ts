import type { Context } from '../cli/command.ts'
import { isCompleted, type Shortcoming, shortcomingsOf } from '../core/completed.ts'
import type { KeyRule } from '../core/key.ts'
import { LineJudge } from '../core/line-judge.ts'
import { EXIT, type Place, ToolError } from '../core/tool-error.ts'
import { expandGlob } from '../files/glob.ts'
import { type Input, openInput } from '../files/input.ts'
import { type LineBlock, lineBlocks } from '../streams/line-blocks.ts'
import { refuseInputs } from './inputs.ts'
import { contentOf, eachLine, RECORD_POLICY } from './record-lines.ts'

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

export interface CompletedOptions {
  rule: KeyRule
  /** Shortcomings that make an answer count as none. */
  redo: ReadonlySet<string>
  /** Gets every answer: its key's fingerprint and its line. */
  onAnswer: (fingerprint: Int32Array, judge: LineJudge, bytes: Buffer, start: number) => void
  /** Told which file is read next. */
  onFile?: (file: string) => void
}

/**
 * Reads files of answers, once each even where several patterns name them, to the size it has now, so that what the same pipeline appends to
 * them is not seen. A missing file is an empty one, with a warning.
 *
 * @param patterns a file or a quoted glob each
 * @returns the counts, and 1 as exit code where unusable lines were named
 * @throws ToolError exit code 2 for a file that has whole lines but not one usable record: to take
 *   it for "nothing done" would pay for everything again
 */
export async function readCompleted(
  context: Context,
  patterns: readonly string[],
  options: CompletedOptions,
): Promise<{ counts: CompletedCounts; exitCode: number }> {
  const reader = new CompletedReader(context, options)
  for (const pattern of patterns) {
    const files = await expandGlob(pattern)
    if (files.length === 0) reader.missing(pattern)
    for (const file of files) {
      if (file === pattern || !isRemovedFile(file)) await reader.read(file)
    }
  }
  return { counts: reader.counts, exitCode: reader.counts.unusable > 0 ? EXIT.data : EXIT.ok }
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
  readonly counts: CompletedCounts = {
    files: 0,
    completed: 0,
    failed: 0,
    unusable: 0,
    length: 0,
    content_filter: 0,
    empty: 0,
  }
  #context: Context
  #options: CompletedOptions
  #judge = new LineJudge(RECORD_POLICY)
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
    const input = await openInput(file, this.#context.stdin, true).catch((error: unknown) => {
      if (!(error instanceof ToolError) || !error.message.includes('no such file')) throw error
      this.missing(file)
    })
    if (input === undefined) return
    if (this.#isKnown(input)) return input.close()
    this.#options.onFile?.(file)
    this.counts.files++
    this.#wholeLines = this.#usable = 0
    let line = 1
    try {
      for await (const block of lineBlocks(input.reader)) line = this.#block(file, block, line)
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
      return this.#context.report.warning(message, 'truncated', place)
    }
    this.#wholeLines++
    const { rule } = this.#options
    const key = rule.findInCompleted(judge.scanner, bytes)
    if (key === undefined) return this.#unusable('a record without a key', 'no-key', place)
    this.#usable++
    judge.scanner.again(content.start)
    if (!isCompleted(judge.scanner, bytes)) {
      this.counts.failed++
      return
    }
    const shortcomings = shortcomingsOf(judge.scanner, bytes, content.start, content.end)
    for (const word of shortcomings) this.counts[word]++
    if (this.#isToBeRedone(shortcomings)) return
    this.counts.completed++
    const fingerprint = rule.fingerprint(bytes, key)
    this.#options.onAnswer(fingerprint, judge, bytes, content.start)
  }

  #isToBeRedone(shortcomings: Shortcoming[]): boolean {
    return shortcomings.some((word) => this.#options.redo.has(word))
  }

  #unusable(message: string, code: string, place: Place): void {
    this.counts.unusable++
    this.#context.report.error(`this line completes nothing: ${message}`, code, place)
  }
}

function noUsableRecord(rule: KeyRule): string {
  const key = rule.field === undefined ? 'a key' : `a field '${rule.field.name}'`
  return `not one record with ${key} in it: is this the file of answers? (nothing was done)`
}
