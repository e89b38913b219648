import type { Context } from '../cli/command.ts'
import { COMPLETED, CONFLICT, type CompletedIndex, PASS } from '../core/completed-index.ts'
import type { ValueRange } from '../core/field.ts'
import { type KeyRule, keyText, lineKey } from '../core/key.ts'
import { fingerprintOf, hashOfContent, KEY_COLUMNS, type KeyTable } from '../core/key-look.ts'
import { LineJudge } from '../core/line-judge.ts'
import { problemText } from '../core/problem-text.ts'
import { isInShard, type Shard } from '../core/shard.ts'
import { EXIT, type Place } from '../core/tool-error.ts'
import { FdSink } from '../files/fd-sink.ts'
import type { Input } from '../files/input.ts'
import type { LineBlock } from '../streams/line-blocks.ts'
import { lookedOver, lookedOverHere } from './look-ahead.ts'
import { contentOf, RECORD_POLICY } from './record-lines.ts'

/** Records that are judged at a time. */
const JUDGED = 1024
/** Beside the verdicts of the index: another task does the record. */
const OF_OTHER = 8

const NEWLINE = Buffer.from('\n')

export interface DedupeCounts {
  records: number
  passed: number
  completed: number
  repeated: number
  invalid: number
  other_shards: number
  blank: number
}

/** Passes on the records of one input after the other that have no answer yet, and counts. */
export class DedupeFilter {
  readonly counts: DedupeCounts = {
    records: 0,
    passed: 0,
    completed: 0,
    repeated: 0,
    invalid: 0,
    other_shards: 0,
    blank: 0,
  }
  #context: Context
  #rule: KeyRule
  #index: CompletedIndex
  #lineJudge = new LineJudge(RECORD_POLICY)
  #out: FdSink
  #shard: Shard | undefined
  #conflicts = 0
  #verdicts = new Uint8Array(JUDGED)
  /** For a record that is judged alone. */
  #row = new Int32Array(KEY_COLUMNS)

  constructor(context: Context, rule: KeyRule, index: CompletedIndex, shard: Shard | undefined) {
    this.#context = context
    this.#rule = rule
    this.#index = index
    this.#shard = shard
    this.#out = new FdSink(context.stdout.fd, '<stdout>')
  }

  async file(
    { name, stats }: Input,
    blocks: AsyncIterable<LineBlock>,
    withThread: boolean,
  ): Promise<void> {
    const order = { kind: 'keys', policy: RECORD_POLICY, key: this.#rule.field?.name } as const
    const looked = withThread ? lookedOver(blocks, order) : lookedOverHere(blocks, order)
    let line = 1
    for await (const { block, result } of looked) {
      if (line === 1 && result !== undefined) {
        this.#index.expect((result.length / KEY_COLUMNS) * (stats.size / block.end))
      }
      line =
        result === undefined
          ? this.#block(name, block, line)
          : this.#keys(name, block, result, line)
      await this.#out.flushBehind()
    }
    await this.#out.flush()
  }

  /** The exit code of the input, with the last words on keys that are none. */
  verdict(): number {
    if (this.#conflicts > 1) {
      this.#context.report.error(
        `${this.#conflicts} records in all repeat a key so`,
        'key-conflict',
      )
    }
    return this.counts.invalid > 0 || this.#conflicts > 0 ? EXIT.data : EXIT.ok
  }

  /** Passes on by the keys that were looked for before. */
  #keys(file: string, { bytes, end }: LineBlock, table: KeyTable, firstLine: number): number {
    // What other shards do is judged by none here.
    const most = (this.#shard === undefined ? JUDGED : 1) * KEY_COLUMNS
    let line = firstLine
    let keptFrom = 0
    let start = 0
    for (let from = 0; from < table.length; from += most) {
      const to = Math.min(from + most, table.length)
      if (this.#judge(table, from, to) === 0) {
        line += (to - from) / KEY_COLUMNS
        start = table[to - KEY_COLUMNS]!
        continue
      }
      for (let row = from; row < to; row += KEY_COLUMNS, line++) {
        const next = table[row]!
        const verdict = this.#verdicts[(row - from) / KEY_COLUMNS]!
        if (verdict !== PASS && !this.#passesOn(verdict, bytes, start, { file, line })) {
          this.#out.add(bytes, keptFrom, start)
          keptFrom = next
        }
        start = next
      }
    }
    this.#out.add(bytes, keptFrom, end)
    return line
  }

  #block(file: string, block: LineBlock, firstLine: number): number {
    const { bytes, end } = block
    const judge = this.#lineJudge
    let line = firstLine
    let keptFrom = 0
    judge.begin(bytes, end)
    for (let at = 0; at < end; line++) {
      const start = at
      const clean = judge.line(start)
      at = judge.terminated ? judge.end + 1 : judge.end
      const range = clean ? { start, end: judge.end } : contentOf(judge, bytes, start)
      const pass =
        range === undefined
          ? this.#invalid(bytes, start, { file, line })
          : this.#passes(bytes, range, { file, line })
      if (pass) continue
      this.#out.add(bytes, keptFrom, start)
      keptFrom = at
    }
    this.#out.add(bytes, keptFrom, end)
    if (keptFrom < end && !judge.terminated) this.#out.add(NEWLINE, 0, 1)
    return line
  }

  #invalid(bytes: Buffer, start: number, place: Place): false {
    const { problems, end } = this.#lineJudge
    const { code, at } = problems[0]!
    if (code === 'blank') {
      this.counts.blank++
      return false
    }
    this.counts.records++
    if (this.#isOfOther(this.#rule.fingerprintOfText(lineKey(bytes, start, end)))) return false
    this.counts.invalid++
    const message = `not passed on: ${problemText(code, bytes, at, end)}`
    this.#context.report.error(message, code, { ...place, column: at - start + 1 })
    return false
  }

  #passes(bytes: Buffer, range: ValueRange, place: Place): boolean {
    const row = this.#row
    // A key that lies deeper moves the scanner.
    row[5] = hashOfContent(this.#lineJudge, bytes, range)
    row.set(fingerprintOf(this.#lineJudge, this.#rule, bytes, range), 1)
    this.#judge(row, 0, row.length)
    const verdict = this.#verdicts[0]!
    return verdict === PASS || this.#passesOn(verdict, bytes, range.start, place)
  }

  /**
   * Judges and counts records; where there are shards, one at a time.
   *
   * @returns how many do not simply pass
   */
  #judge(rows: KeyTable, from: number, to: number): number {
    const records = (to - from) / KEY_COLUMNS
    this.counts.records += records
    if (this.#isOfOther(rows, from + 1)) {
      this.#verdicts[0] = OF_OTHER
      return 1
    }
    this.counts.passed += records
    return this.#index.judge(rows, from, to, this.#verdicts)
  }

  /** Counts a record that was taken for one that passes, and whose verdict is another. */
  #passesOn(verdict: number, bytes: Buffer, start: number, place: Place): boolean {
    if ((verdict & CONFLICT) !== 0) this.#conflict(bytes, start, place)
    const kind = verdict & ~CONFLICT
    if (kind === PASS) return true
    if (kind === OF_OTHER) return false
    this.counts.passed--
    this.counts[kind === COMPLETED ? 'completed' : 'repeated']++
    return false
  }

  /** Counts what another task does. */
  #isOfOther(fingerprint: Int32Array, from = 0): boolean {
    if (isInShard(this.#shard, fingerprint, from)) return false
    this.counts.other_shards++
    return true
  }

  #conflict(bytes: Buffer, start: number, place: Place): void {
    if (++this.#conflicts > 1) return
    const { scanner } = this.#lineJudge
    scanner.use(bytes)
    scanner.value(start)
    const key = this.#rule.find(scanner, bytes)
    if (key === undefined) return
    const text = keyText(bytes, key)
    const shown = Buffer.from(text.bytes.subarray(text.start, text.end)).toString().slice(0, 80)
    this.#context.report.error(
      `the key '${shown}' stands here for another record than before: name the member that tells ` +
        'records apart with --key, or pass repeated ones with --multiset',
      'key-conflict',
      { ...place, column: key.start - start + 1 },
    )
  }
}
