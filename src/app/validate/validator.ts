import type { Context } from '../../cli/command.ts'
import {
  FILE_SENTENCES,
  fileKind,
  hasBom,
  isConflictMarker,
  isConflictSeparator,
} from '../../core/file-kind.ts'
import { isBlankRange } from '../../core/json-problem.ts'
import { LineJudge, type LinePolicy } from '../../core/line-judge.ts'
import { problemText } from '../../core/problem-text.ts'
import type { RemovedPiece } from '../../core/removed-piece.ts'
import { EXIT, type Place } from '../../core/tool-error.ts'
import type { FdSink } from '../../files/fd-sink.ts'
import type { Input } from '../../files/input.ts'
import type { RemovedFile } from '../../files/removed-file.ts'
import type { LineBlock } from '../../streams/line-blocks.ts'
import { isUnread } from '../inputs.ts'
import { isWorthAThread, lookedOver, notLookedOver } from '../look-ahead.ts'
import type { Finding, LineCheck } from './line-checks.ts'
import type { ValidateOptions } from './options.ts'

const NEWLINE = Buffer.from('\n')
const NONE: readonly Finding[] = []

type Counts = Record<string, number>

/** Judges line by line, passes the valid ones on and counts. */
export class Validator {
  readonly counts = { lines: 0, valid: 0, invalid: 0, warnings: 0, problems: {} as Counts }
  #context: Context
  #options: ValidateOptions
  #out: FdSink
  #rejects: RemovedFile | undefined
  #judge: LineJudge
  #policy: LinePolicy
  #checks: readonly LineCheck[]
  /** Bad lines of the block in work, for --rejects. */
  #pieces: RemovedPiece[] = []
  #inConflict = false

  constructor(
    context: Context,
    options: ValidateOptions,
    checks: readonly LineCheck[],
    out: FdSink,
    rejects: RemovedFile | undefined,
  ) {
    this.#context = context
    this.#options = options
    this.#out = out
    this.#rejects = rejects
    this.#policy = { maxDepth: options.maxDepth, allow: new Set(options.allow) }
    this.#judge = new LineJudge(this.#policy)
    this.#checks = checks
  }

  /** Whether a second thread looks over the blocks of this input. */
  usesThread(input: Input): boolean {
    const plain = this.#checks.length === 0 && this.#options.readSize === undefined
    return plain && isWorthAThread(input)
  }

  /** Checks one file; the counts go on over files, line numbers begin anew. */
  async file(input: Input, blocks: AsyncIterable<LineBlock>): Promise<void> {
    this.#inConflict = false
    let line = 1
    const looked = this.usesThread(input)
      ? lookedOver(blocks, { kind: 'clean', policy: this.#policy })
      : notLookedOver(blocks)
    for await (const { block, result } of looked) {
      const kind = block.offset === 0 ? fileKind(block.bytes, block.end) : undefined
      if (kind !== undefined && kind !== 'undecided') {
        this.#report({ code: kind, message: FILE_SENTENCES[kind] }, { file: input.name })
        return
      }
      if (result?.clean) {
        line += result.lines
        this.#count(result.lines)
        if (!this.#options.quiet) this.#out.add(block.bytes, 0, block.end)
      } else line = this.#block(input.name, block, line)
      if (!this.#options.quiet) await this.#out.flushBehind()
      await this.#rejects?.addAll(this.#pieces.splice(0))
      if (this.#enough()) return
    }
  }

  /**
   * The exit code over all files, after a last check of their number of records.
   *
   * @param code the worst exit code of the inputs
   */
  verdict(code: number): number {
    const { counts } = this
    const { minRecords } = this.#options
    if (counts.valid < minRecords) {
      const message = `${counts.valid} valid lines, --min-records ${minRecords}`
      this.#report({ code: 'min-records', message })
    }
    const problems = Object.values(counts.problems).reduce((sum, count) => sum + count, 0)
    if (!isUnread(code, counts.lines)) {
      this.#context.report.note(`${counts.valid} of ${counts.lines} lines valid`)
    }
    return problems > 0 ? EXIT.data : EXIT.ok
  }

  /** Checks the lines of a block; returns the number of the line behind it. */
  #block(file: string, block: LineBlock, firstLine: number): number {
    const { bytes, end } = block
    const judge = this.#judge
    const keep = !this.#options.quiet
    let line = firstLine
    let keptFrom = 0
    judge.begin(bytes, end)
    for (let at = 0; ; line++) {
      if (this.#checks.length === 0) {
        at = judge.passClean(at)
        line += judge.passed
      }
      if (at >= end) break
      const start = at
      const grammatical = judge.line(start)
      const found = grammatical && this.#checks.length > 0 ? this.#check(bytes, start) : NONE
      const clean = grammatical && found.length === 0
      at = judge.terminated ? judge.end + 1 : judge.end
      if (clean) continue
      if (keep) this.#out.add(bytes, keptFrom, start)
      keptFrom = at
      // The damage of the compression is the problem, and is reported as one.
      if (block.cut && !judge.terminated) break
      this.#badLine(file, block, start, at, line, found)
      if (this.#enough()) {
        this.#count(line + 1 - firstLine)
        return line + 1
      }
    }
    if (keep) this.#out.add(bytes, keptFrom, end)
    if (keptFrom < end && !judge.terminated) {
      this.#missingNewline({ file, line: line - 1, column: columnBehind(bytes, end) })
    }
    this.#count(line - firstLine)
    return line
  }

  #count(lines: number): void {
    this.counts.lines += lines
    this.counts.valid = this.counts.lines - this.counts.invalid
  }

  #badLine(
    file: string,
    block: LineBlock,
    start: number,
    next: number,
    line: number,
    found: readonly Finding[],
  ): void {
    this.counts.invalid++
    const findings = found.length > 0 ? found : this.#findings(block.bytes, start, line)
    for (const { code, message, at } of findings) {
      const ofLine = { file, line, column: at === undefined ? 1 : at - start + 1 }
      this.#report({ code, message }, code === 'conflict-marker' ? { file } : ofLine)
    }
    if (this.#rejects === undefined) return
    this.#pieces.push({
      file,
      line,
      offset: block.offset + start,
      code: findings[0]?.code ?? 'conflict-marker',
      bytes: block.bytes.subarray(start, next),
    })
  }

  #findings(bytes: Buffer, start: number, line: number): Finding[] {
    const { end, problems } = this.#judge
    if (isConflictMarker(bytes, start, end)) {
      // One message for the file, however many conflicts it has.
      if (this.#inConflict) return []
      this.#inConflict = true
      const message = `${FILE_SENTENCES['conflict-marker']} (the first in line ${line})`
      return [{ code: 'conflict-marker', message }]
    }
    if (this.#inConflict && isConflictSeparator(bytes, start, end)) return []
    return problems.map(({ code, at }) => ({
      code,
      message: problemText(code, bytes, at, end),
      at,
    }))
  }

  #check(bytes: Buffer, start: number): Finding[] {
    const { scanner, end } = this.#judge
    const from = hasBom(bytes, start, end) ? start + 3 : start
    if (isBlankRange(bytes, from, end)) return []
    const line = { bytes, start: from, end, scanner }
    return this.#checks.flatMap((check) => check(line))
  }

  #missingNewline(place: Place): void {
    const message = 'the last line has no newline'
    if (this.#options.strict) this.#report({ code: 'no-final-newline', message }, place)
    else {
      this.counts.warnings++
      this.#say('warning', { code: 'no-final-newline', message }, place)
    }
    this.#out.add(NEWLINE, 0, 1)
  }

  #report({ code, message }: Finding, place?: Place): void {
    this.counts.problems[code] = (this.counts.problems[code] ?? 0) + 1
    this.#say('error', { code, message }, place)
  }

  #say(severity: 'error' | 'warning', { code, message }: Finding, place?: Place): void {
    const { report } = this.#context
    if (!this.#options.json) report[severity](message, code, place)
    else if (severity === 'error' || !this.#options.quiet) {
      report.line(JSON.stringify({ severity, ...place, code, message }))
    }
  }

  #enough(): boolean {
    return this.#options.maxErrors !== undefined && this.counts.invalid >= this.#options.maxErrors
  }
}

/** Where a line feed is missing in the line that ends at `end`. */
function columnBehind(bytes: Buffer, end: number): number {
  return end - (bytes.lastIndexOf(0x0a, end - 1) + 1) + 1
}
