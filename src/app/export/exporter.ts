import { AnswerReader, type AnswerRecord } from '../../core/answer-record.ts'
import { contentHash } from '../../core/content-hash.ts'
import { contentLength, type Turn } from '../../core/conversation.ts'
import { type ExportForm, type ExportRow, FORMS } from '../../core/export-form.ts'
import { stringAt, type ValueRange } from '../../core/field.ts'
import { FingerprintTable } from '../../core/fingerprint-table.ts'
import { murmur128 } from '../../core/hash.ts'
import type { JsonScanner } from '../../core/json-scan.ts'
import { keyText, lineKey } from '../../core/key.ts'
import { MessageWriter } from '../../core/message-writer.ts'
import { RowHash } from '../../core/row-hash.ts'
import { RowProblem } from '../../core/row-problem.ts'
import { hasTokenIds, tokenRow } from '../../core/token-row.ts'
import type { LeftOutCode } from '../../core/trainer-rules.ts'
import type { ExportOptions } from './options.ts'
import type { RowOutput } from './outputs.ts'
import type { ExportSettings } from './settings.ts'

const QUOTE = 0x22
/** Below this many bytes four native calls cost more than a hash in JavaScript. */
const SHORT = 1024

/** Where rows go: to training, or to evaluation. */
export interface Outputs {
  train: RowOutput
  eval: RowOutput | undefined
}

/** Turns records of answers into rows of one trainer's form, or counts why not. */
export class Exporter {
  records = 0
  exported = 0
  readonly leftOut: Partial<Record<LeftOutCode, number>> = {}
  #options: ExportOptions
  #settings: ExportSettings
  #outputs: Outputs
  #form: ExportForm
  #reader = new AnswerReader()
  #messages: MessageWriter
  #splitting: RowHash
  #seen: FingerprintTable | undefined
  #fingerprint = new Int32Array(4)
  /** Whether pre-tokenised rows are written; with `auto` the first row decides. */
  #usesTokens: boolean | undefined

  constructor(options: ExportOptions, settings: ExportSettings, outputs: Outputs) {
    this.#options = options
    this.#settings = settings
    this.#outputs = outputs
    this.#form = FORMS[settings.form]
    this.#messages = new MessageWriter(settings.style)
    this.#splitting = new RowHash('split', options.seed ?? '')
    if (!options.keepDuplicates) this.#seen = new FingerprintTable(0)
    const mayUse = settings.form === 'speculators' && options.tokenIds !== 'drop'
    this.#usesTokens = mayUse ? (options.tokenIds === 'use' ? true : undefined) : false
  }

  /**
   * Takes the record that the scanner has just read.
   *
   * @returns false where it is no record of answers at all
   */
  record(scanner: JsonScanner, bytes: Buffer, range: ValueRange): boolean {
    let why: LeftOutCode | undefined
    try {
      const record = this.#reader.read(scanner, bytes, range)
      if (record === 'no-conversation') return false
      why = record === 'failed' ? record : this.#export(bytes, record)
    } catch (error) {
      if (!(error instanceof RowProblem)) throw error
      why = error.code === 'wrong-type' ? 'not-text' : 'roles'
    }
    this.records++
    if (why === undefined) this.exported++
    else this.leftOut[why] = (this.leftOut[why] ?? 0) + 1
    return true
  }

  async settle(): Promise<void> {
    await this.#outputs.train.settle()
    await this.#outputs.eval?.settle()
  }

  /** Writes the record's rows; returns why there are none. */
  #export(bytes: Buffer, record: AnswerRecord): LeftOutCode | undefined {
    const why = this.#flaw(bytes, record)
    if (why !== undefined) return why
    const id = idToken(bytes, record)
    const output = this.#outputOf(bytes, record, id)
    const row = { bytes, record, id, turns: record.turns, lastReasoningOnly: false }
    if (this.#options.reasoningTurns && this.#usesTokens !== true) return this.#byTurns(output, row)
    return this.#write(output, row)
  }

  #flaw(bytes: Buffer, record: AnswerRecord): LeftOutCode | undefined {
    const { only, minChars } = this.#options
    const { turns, isBatch } = record
    if (isBatch && this.#settings.form !== 'openai-batch') return 'no-question'
    if (turns.length === 0) return isBatch ? 'no-answer' : 'roles'
    if (only.length > 0 && reasonsOf(bytes, record).some((reason) => !only.includes(reason))) {
      return 'finish'
    }
    const flaw = this.#form.check(bytes, turns)
    if (flaw !== undefined) return flaw
    if (this.#settings.style.reasoning === 'inline' && turns.some((turn) => isParts(bytes, turn))) {
      return 'not-text'
    }
    const { content } = turns.at(-1)!
    if (minChars > 0 && (content === undefined || contentLength(bytes, content) < minChars)) {
      return 'too-short'
    }
    this.#usesTokens ??= hasTokenIds(bytes, record)
    return this.#usesTokens && !hasTokenIds(bytes, record) ? 'no-token-ids' : undefined
  }

  /**
   * One row for each answer, with the conversation before it, whose reasoning is history. An answer
   * inside that is none, being empty, gives no row of its own.
   */
  #byTurns(output: RowOutput, row: ExportRow): LeftOutCode | undefined {
    const ends = [...row.turns.keys()].filter((index) => row.turns[index]!.role === 'assistant')
    if (ends.length === 1) return this.#write(output, row)
    const name = row.id.subarray(0, -1).toString()
    const whys = ends.map((end, turn) => {
      const turns = row.turns.slice(0, end + 1)
      const flaw = this.#form.check(row.bytes, turns)
      if (flaw !== undefined) return flaw
      const id = Buffer.from(`${name}#turn${turn}"`)
      return this.#write(output, { ...row, id, turns, lastReasoningOnly: true })
    })
    return whys.every((why) => why !== undefined) ? whys[0] : undefined
  }

  #write(output: RowOutput, row: ExportRow): LeftOutCode | undefined {
    const { draft } = output
    const start = draft.length
    const content =
      this.#usesTokens === true
        ? tokenRow(draft, row, this.#messages)
        : this.#form.write(draft, row, this.#messages)
    const isRepeated = content
      ? this.#isRepeated(draft.bytes, content.start, content.end)
      : !row.record.isBatch &&
        this.#isRepeated(row.bytes, row.turns[0]!.start, row.turns.at(-1)!.end)
    if (isRepeated) {
      draft.length = start
      return 'duplicate'
    }
    output.take(start)
    return undefined
  }

  /**
   * Whether the same bytes came before: long ones by the hash of each quarter, which the kernel makes
   * at several GB a second. Two texts of one length that differ in one quarter alone are taken for the
   * same once in 2^32 times.
   */
  #isRepeated(bytes: Buffer, start: number, end: number): boolean {
    if (this.#seen === undefined) return false
    if (end - start < SHORT) murmur128(bytes, start, end, 0, this.#fingerprint)
    else this.#quarters(bytes, start, end)
    return this.#seen.place(this.#fingerprint)
  }

  #quarters(bytes: Buffer, start: number, end: number): void {
    const length = end - start
    let from = start
    for (let quarter = 0; quarter < 4; quarter++) {
      const to = start + Math.floor((length * (quarter + 1)) / 4)
      this.#fingerprint[quarter] = contentHash(bytes, from, to)
      from = to
    }
  }

  /** Training or evaluation, by the id: samples of one prompt (x#0, x#1) stay together. */
  #outputOf(bytes: Buffer, record: AnswerRecord, id: Buffer): RowOutput {
    const { trainShare } = this.#settings
    if (trainShare === undefined || this.#outputs.eval === undefined) return this.#outputs.train
    const range = record.id
    const key =
      range === undefined ? keyText(id, { start: 0, end: id.length }) : keyText(bytes, range)
    this.#splitting.ofText({ ...key, end: withoutSample(key.bytes, key.start, key.end) })
    return this.#splitting.unit < trainShare ? this.#outputs.train : this.#outputs.eval
  }
}

/** The id as a string token: a column of trainers' readers has one type. */
function idToken(bytes: Buffer, { id, start, end }: AnswerRecord): Buffer {
  if (id === undefined) return Buffer.from(`"${lineKey(bytes, start, end)}"`)
  const token = bytes.subarray(id.start, id.end)
  if (token[0] === QUOTE) return token
  return Buffer.from(`"${token.toString('latin1')}"`)
}

function isParts(bytes: Buffer, { reasoning, content }: Turn): boolean {
  return reasoning !== undefined && content !== undefined && bytes[content.start] !== QUOTE
}

/** The end of the text without a `#` and digits at its end. */
function withoutSample(bytes: Uint8Array, start: number, end: number): number {
  let at = end
  while (at > start && bytes[at - 1]! >= 0x30 && bytes[at - 1]! <= 0x39) at--
  return at < end && at > start + 1 && bytes[at - 1] === 0x23 ? at - 1 : end
}

/** Why the answer ended, and each of its turns where there were several. */
function reasonsOf(bytes: Buffer, { finishReason, provenance }: AnswerRecord): string[] {
  const reasons = [stringAt(bytes, finishReason) ?? 'null']
  if (provenance === undefined) return reasons
  const turns: unknown = JSON.parse(bytes.toString('utf8', provenance.start, provenance.end))
  for (const turn of Array.isArray(turns) ? turns : []) {
    const reason = (turn as { finish_reason?: unknown } | null)?.finish_reason
    if (typeof reason === 'string') reasons.push(reason)
  }
  return reasons
}
