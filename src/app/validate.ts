import type { Context } from '../cli/command.ts'
import { type Field, findField, parseField } from '../core/field.ts'
import {
  FILE_SENTENCES,
  fileKind,
  isConflictMarker,
  isConflictSeparator,
} from '../core/file-kind.ts'
import { LineJudge } from '../core/line-judge.ts'
import { problemText } from '../core/problem-text.ts'
import type { RemovedPiece } from '../core/removed-piece.ts'
import { EXIT, type Place } from '../core/tool-error.ts'
import { FdSink } from '../files/fd-sink.ts'
import type { Input } from '../files/input.ts'
import { RemovedFile } from '../files/removed-file.ts'
import type { LineBlock } from '../streams/line-blocks.ts'
import { forEachInput } from './inputs.ts'
import { writeStats } from './stats.ts'

const NEWLINE = Buffer.from('\n')

export interface ValidateOptions {
  quiet: boolean
  requireObject: boolean
  require: string[]
  allow: string[]
  strict: boolean
  minRecords: number
  maxDepth: number
  maxErrors: number | undefined
  rejects: string | undefined
  readSize: number | undefined
  stats: string | undefined
}

/** The program of validate-jsonl: valid lines out, a message for each problem, the verdict. */
export async function validate(
  context: Context,
  options: ValidateOptions,
  operands: string[],
): Promise<number> {
  const out = new FdSink(context.stdout.fd, '<stdout>')
  const rejects = options.rejects === undefined ? undefined : new RemovedFile(options.rejects)
  const validator = new Validator(context, options, out, rejects)
  let worst: number
  try {
    worst = await forEachInput(
      context,
      operands,
      {
        blockSize: options.readSize,
        headComplete: (bytes, end) => fileKind(bytes, end) !== 'undecided',
        outputs: [options.rejects, options.stats],
      },
      (input, blocks) => validator.file(input, blocks),
    )
    worst = Math.max(worst, validator.verdict())
  } finally {
    await rejects?.close()
    await writeStats(context, options.stats, validator.counts)
  }
  return worst
}

type Counts = Record<string, number>

/** One problem as it is reported; `at` is an offset in the block, absent for the line as a whole. */
interface Finding {
  code: string
  message: string
  at?: number
}

class Validator {
  readonly counts = { lines: 0, valid: 0, invalid: 0, warnings: 0, problems: {} as Counts }
  #context: Context
  #options: ValidateOptions
  #out: FdSink
  #rejects: RemovedFile | undefined
  #judge: LineJudge
  #required: Field[]
  #needsObject: boolean
  /** Bad lines of the block in work, for --rejects. */
  #pieces: RemovedPiece[] = []
  #inConflict = false

  constructor(
    context: Context,
    options: ValidateOptions,
    out: FdSink,
    rejects: RemovedFile | undefined,
  ) {
    this.#context = context
    this.#options = options
    this.#out = out
    this.#rejects = rejects
    this.#judge = new LineJudge({ maxDepth: options.maxDepth, allow: new Set(options.allow) })
    this.#required = options.require.map(parseField)
    this.#needsObject = options.requireObject || this.#required.length > 0
  }

  /** Checks one file; the counts go on over files, line numbers begin anew. */
  async file(input: Input, blocks: AsyncIterable<LineBlock>): Promise<void> {
    let line = 1
    this.#inConflict = false
    for await (const block of blocks) {
      const kind = block.offset === 0 ? fileKind(block.bytes, block.end) : undefined
      if (kind !== undefined && kind !== 'undecided') {
        this.#report({ code: kind, message: FILE_SENTENCES[kind] }, { file: input.name })
        return
      }
      line = this.#block(input.name, block, line)
      if (!this.#options.quiet) await this.#out.flush()
      await this.#rejects?.addAll(this.#pieces.splice(0))
      if (this.#enough()) return
    }
  }

  /** The exit code over all files, after a last check of their number of records. */
  verdict(): number {
    const { counts } = this
    const { minRecords } = this.#options
    if (counts.valid < minRecords) {
      const message = `${counts.valid} valid lines, --min-records ${minRecords}`
      this.#report({ code: 'min-records', message })
    }
    const problems = Object.values(counts.problems).reduce((sum, count) => sum + count, 0)
    this.#context.report.note(`${counts.valid} of ${counts.lines} lines valid`)
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
    for (let at = 0; at < end; line++) {
      const start = at
      const clean = judge.line(start) && (!this.#needsObject || this.#hasFields(bytes, start))
      at = judge.terminated ? judge.end + 1 : judge.end
      if (clean) continue
      if (keep) this.#out.add(bytes, keptFrom, start)
      keptFrom = at
      // The damage of the compression is the problem, and is reported as one.
      if (block.cut && !judge.terminated) break
      this.#badLine(file, block, start, at, line)
      if (this.#enough()) {
        this.#count(line + 1 - firstLine)
        return line + 1
      }
    }
    if (keep) this.#out.add(bytes, keptFrom, end)
    if (keptFrom < end && !judge.terminated) this.#missingNewline(file, line - 1)
    this.#count(line - firstLine)
    return line
  }

  #count(lines: number): void {
    this.counts.lines += lines
    this.counts.valid = this.counts.lines - this.counts.invalid
  }

  #badLine(file: string, block: LineBlock, start: number, next: number, line: number): void {
    this.counts.invalid++
    const findings = this.#findings(block.bytes, start)
    for (const { code, message, at } of findings) {
      const column = at === undefined ? undefined : at - start + 1
      this.#report({ code, message }, { file, line, ...(column !== undefined && { column }) })
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

  #findings(bytes: Buffer, start: number): Finding[] {
    const { end, problems } = this.#judge
    if (isConflictMarker(bytes, start, end)) {
      // One message for the file, however many conflicts it has.
      if (this.counts.problems['conflict-marker'] !== undefined && this.#inConflict) return []
      this.#inConflict = true
      return [{ code: 'conflict-marker', message: FILE_SENTENCES['conflict-marker'] }]
    }
    if (this.#inConflict && isConflictSeparator(bytes, start, end)) return []
    if (problems.length === 0) return this.#missing(bytes, start)
    return problems.map(({ code, at }) => ({
      code,
      message: problemText(code, bytes, at, end),
      at,
    }))
  }

  /** Whether the line is an object that has the required fields. */
  #hasFields(bytes: Buffer, start: number): boolean {
    return this.#missing(bytes, start).length === 0
  }

  #missing(bytes: Buffer, start: number): Finding[] {
    const scanner = this.#judge.scanner
    const value = scanner.value(start)
    if (bytes[value - 1] !== 0x7d) {
      return [{ code: 'not-object', message: 'the value is no object' }]
    }
    const missing: Finding[] = []
    for (const field of this.#required) {
      if (findField(scanner, bytes, field) === undefined) {
        missing.push({ code: 'missing-field', message: `the object has no field '${field.name}'` })
      }
      if (field.steps.length > 1) scanner.value(start)
    }
    return missing
  }

  #missingNewline(file: string, line: number): void {
    const message = 'the last line has no newline'
    const place = { file, line }
    if (this.#options.strict) this.#report({ code: 'no-final-newline', message }, place)
    else {
      this.counts.warnings++
      this.#context.report.warning(message, 'no-final-newline', place)
    }
    this.#out.add(NEWLINE, 0, 1)
  }

  #report({ code, message }: Finding, place?: Place): void {
    this.counts.problems[code] = (this.counts.problems[code] ?? 0) + 1
    this.#context.report.error(message, code, place)
  }

  #enough(): boolean {
    return this.#options.maxErrors !== undefined && this.counts.invalid >= this.#options.maxErrors
  }
}
