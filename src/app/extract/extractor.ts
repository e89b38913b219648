import type { Context } from '../../cli/command.ts'
import type { ByteBuilder } from '../../core/byte-builder.ts'
import { type Field, findField, parseField, type ValueRange } from '../../core/field.ts'
import type { JsonScanner } from '../../core/json-scan.ts'
import { PromptWriter } from '../../core/prompt-record.ts'
import { memberNames, PROMPT_FIELDS, type Prompt, PromptFinder } from '../../core/prompt-shape.ts'
import { RowProblem, type RowProblemCode } from '../../core/row-problem.ts'
import type { Shard } from '../../core/shard.ts'
import { FileShape } from '../file-shape.ts'
import { noShape } from '../no-shape.ts'
import { Emitter } from './emitter.ts'
import type { ExtractOptions } from './options.ts'
import { RecordIds } from './record-ids.ts'
import type { RowHandler, RowPlace } from './row-handler.ts'
import { RowReport } from './row-report.ts'

const COMMA = 0x2c
const END = Buffer.from('}\n')

/** Turns rows into records for fanout-complete, or says why it cannot. */
export class Extractor implements RowHandler {
  rows = 0
  blankLines = 0
  readonly report: RowReport
  readonly emitter: Emitter
  #options: ExtractOptions
  #ids: RecordIds
  #promptField: Field | undefined
  #keep: { field: Field; head: Buffer }[]
  #out: ByteBuilder
  #writer: PromptWriter
  #prompts: PromptFinder
  #shape: FileShape

  constructor(context: Context, options: ExtractOptions, shard: Shard | undefined) {
    this.#options = options
    this.report = new RowReport(context, options.rejects, shard)
    this.#shape = new FileShape((file, names, rows) => this.#noShape(file, names, rows))
    this.#ids = new RecordIds(options.key, options.pathIds)
    this.emitter = new Emitter(options, context.stdout.fd, shard)
    this.#out = this.emitter.draft
    this.#writer = new PromptWriter(options.turns, this.#out, options.maxPromptChars !== undefined)
    this.#promptField =
      options.promptField === undefined ? undefined : parseField(options.promptField)
    this.#prompts = new PromptFinder(this.#promptField)
    this.#keep = options.keep.map((name) => ({
      field: parseField(name),
      head: Buffer.from(`,${JSON.stringify(name)}:`),
    }))
  }

  get done(): boolean {
    return this.emitter.done
  }

  row(scanner: JsonScanner, bytes: Buffer, range: ValueRange, place: RowPlace): void {
    this.rows++
    this.emitter.begin()
    try {
      if (bytes[range.start] !== 0x7b) throw new RowProblem('not-object')
      this.#prompt(scanner, bytes, range, place)
    } catch (error) {
      this.emitter.drop()
      if (!(error instanceof RowProblem)) {
        this.rows--
        throw error
      }
      this.#unusable(error, scanner, bytes, range, place)
    }
  }

  broken(code: string, message: string, bytes: Buffer, range: ValueRange, place: RowPlace): void {
    this.rows++
    this.report.reject(code, message, place, copyOf(bytes, range))
  }

  lost(code: string, message: string, count: number, place: RowPlace): void {
    this.rows += count
    this.report.reject(code, message, place, undefined, count)
  }

  fileProblem(code: string, message: string, file: string, row?: number): void {
    this.report.fileProblem(code, message, file, row)
  }

  blank(): void {
    this.blankLines++
  }

  async settle(): Promise<void> {
    await this.emitter.settle()
    await this.report.settle()
  }

  /** Begins with another file, whose shape is not known yet. */
  beginFile(): void {
    this.#shape.begin()
  }

  /**
   * Ends a file.
   *
   * @throws ToolError `no-shape` where no row of it had a known field
   */
  async endFile(file: string): Promise<void> {
    this.#shape.end(file)
    this.report.endFile()
    await this.settle()
  }

  #prompt(scanner: JsonScanner, bytes: Buffer, range: ValueRange, place: RowPlace): void {
    this.#prompts.look(scanner, bytes)
    const key = this.#ids.isNamed ? this.#ids.named(scanner, bytes) : this.#prompts.key(bytes)
    if (key === undefined) this.#ids.appendMade(this.#out, place)
    else this.#out.append(bytes, key.start, key.end)
    const idEnd = this.#out.length
    this.#out.byte(COMMA)
    if (this.#ids.reachesInside) scanner.value(range.start)
    const prompt = this.#prompts.find(scanner, bytes)
    if (!this.#shape.isKnown) this.#shape.known()
    if (!this.#asks(scanner, bytes, prompt)) {
      this.emitter.drop()
      return
    }
    if (this.#keep.length > 0) this.#kept(scanner, bytes, range)
    this.#out.append(END)
    this.emitter.take(idEnd)
  }

  /** Appends what is asked; returns whether the options let it pass. */
  #asks(scanner: JsonScanner, bytes: Buffer, prompt: Prompt): boolean {
    const { skipEmpty, maxPromptChars } = this.#options
    const { leftOut } = this.emitter
    try {
      this.#writer.write(bytes, prompt, scanner.longStrings)
    } catch (error) {
      if (!skipEmpty || !(error instanceof RowProblem) || error.code !== 'empty-prompt') throw error
      leftOut.empty++
      return false
    }
    const fits = maxPromptChars === undefined || !this.#writer.isLongerThan(maxPromptChars)
    if (!fits) leftOut.too_long++
    return fits
  }

  /** Appends the members of --keep, each value byte for byte. */
  #kept(scanner: JsonScanner, bytes: Buffer, range: ValueRange): void {
    let moved = (this.#promptField?.steps.length ?? 1) > 1
    for (const { field, head } of this.#keep) {
      if (moved) scanner.value(range.start)
      const value = findField(scanner, bytes, field)
      moved = field.steps.length > 1
      if (value === undefined) continue
      this.#out.append(head)
      this.#out.append(bytes, value.start, value.end)
    }
  }

  #unusable(
    problem: RowProblem,
    scanner: JsonScanner,
    bytes: Buffer,
    range: ValueRange,
    place: RowPlace,
  ): void {
    const row = copyOf(bytes, range)
    const tell = (): void => this.report.reject(problem.code, problem.message, place, row)
    if (problem.code !== 'not-object' && this.#prompts.hasField) this.shapeKnown()
    if (this.#shape.isKnown || !UNDECIDED.has(problem.code)) tell()
    else this.#shape.hold(place.file, () => this.#namesOf(problem, scanner, bytes, range), tell)
  }

  #namesOf(
    { code }: RowProblem,
    scanner: JsonScanner,
    bytes: Buffer,
    { start }: ValueRange,
  ): string[] | undefined {
    if (code !== 'no-prompt') return undefined
    scanner.value(start)
    return memberNames(scanner, bytes)
  }

  /** The file has the shape that is looked for: rows without it are single ones. */
  shapeKnown(): void {
    this.#shape.known()
  }

  #noShape(file: string, names: readonly string[], rows: number): Error {
    const { promptField } = this.#options
    this.report.counts['no-shape'] = (this.report.counts['no-shape'] ?? 0) + rows
    return noShape(file, promptField === undefined ? PROMPT_FIELDS : [promptField], names, 'fields')
  }
}

/** Problems of rows that may be the whole file's. */
const UNDECIDED = new Set<RowProblemCode>(['no-prompt', 'not-object'])

function copyOf(bytes: Buffer, { start, end }: ValueRange): Buffer {
  return Buffer.from(bytes.subarray(start, end))
}
