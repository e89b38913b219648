import { crc32 } from 'node:zlib'
import type { Context } from '../cli/command.ts'
import { CompletedIndex } from '../core/completed-index.ts'
import type { ValueRange } from '../core/field.ts'
import { KeyRule, keyText, lineKey } from '../core/key.ts'
import { LineJudge } from '../core/line-judge.ts'
import { problemText } from '../core/problem-text.ts'
import { isInShard, type Shard } from '../core/shard.ts'
import { EXIT, type Place, usageError } from '../core/tool-error.ts'
import { FdSink } from '../files/fd-sink.ts'
import type { LineBlock } from '../streams/line-blocks.ts'
import { type CompletedCounts, readCompleted } from './completed-files.ts'
import { forEachInput } from './inputs.ts'
import { contentOf, RECORD_POLICY } from './record-lines.ts'
import { noteIdle, resolveShard, type ShardChoice } from './shard.ts'
import { writeStats } from './stats.ts'

export interface DedupeOptions extends ShardChoice {
  completed: string[]
  key: string | undefined
  multiset: boolean
  redo: string[]
  readSize: number | undefined
  stats: string | undefined
}

const NEWLINE = Buffer.from('\n')

/** The program of dedupe-completed: reads what is completed, then passes on what is not. */
export async function dedupe(
  context: Context,
  options: DedupeOptions,
  operands: string[],
): Promise<number> {
  if (options.completed.length === 0) {
    throw usageError('name the file of answers with --completed FILE (it need not exist yet)')
  }
  const { shard, names } = resolveShard(context, options, { stats: options.stats })
  const rule = new KeyRule(options.key)
  const index = new CompletedIndex(options.multiset)
  const { counts: completed, exitCode } = await readCompleted(context, options.completed, {
    rule,
    redo: new Set(options.redo),
    onAnswer: (fingerprint) => {
      if (isInShard(shard, fingerprint)) index.complete(fingerprint)
    },
  })
  const filter = new DedupeFilter(context, rule, index, shard)
  let worst: number = exitCode
  try {
    const input = { blockSize: options.readSize, mayBeOutput: false }
    const met = await forEachInput(context, operands, input, (file, blocks) =>
      filter.file(file.name, blocks),
    )
    worst = Math.max(worst, met, filter.verdict())
  } finally {
    await writeStats(context, names.stats, { ...filter.counts, completed_files: completed })
  }
  summarise(context, filter.counts, completed, options)
  if (filter.counts.passed === 0) noteIdle(context, shard, 'no record of it is left')
  return worst
}

interface DedupeCounts {
  records: number
  passed: number
  completed: number
  repeated: number
  invalid: number
  other_shards: number
  blank: number
}

class DedupeFilter {
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
  #judge = new LineJudge(RECORD_POLICY)
  #out: FdSink
  #shard: Shard | undefined
  #conflicts = 0

  constructor(context: Context, rule: KeyRule, index: CompletedIndex, shard: Shard | undefined) {
    this.#context = context
    this.#rule = rule
    this.#index = index
    this.#shard = shard
    this.#out = new FdSink(context.stdout.fd, '<stdout>')
  }

  async file(name: string, blocks: AsyncIterable<LineBlock>): Promise<void> {
    let line = 1
    for await (const block of blocks) {
      line = this.#block(name, block, line)
      await this.#out.flush()
    }
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

  #block(file: string, block: LineBlock, firstLine: number): number {
    const { bytes, end } = block
    const judge = this.#judge
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
    const { problems, end } = this.#judge
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
    this.counts.records++
    const key = this.#rule.find(this.#judge.scanner, bytes)
    const fingerprint =
      key === undefined
        ? this.#rule.fingerprintOfText(lineKey(bytes, range.start, range.end))
        : this.#rule.fingerprint(bytes, key)
    if (this.#isOfOther(fingerprint)) return false
    const verdict = this.#index.judge(fingerprint, contentHash(bytes, range))
    if (this.#index.conflict) this.#conflict(bytes, key, place)
    if (verdict === 'pass') this.counts.passed++
    else this.counts[verdict]++
    return verdict === 'pass'
  }

  /** Counts what another task does. */
  #isOfOther(fingerprint: Int32Array): boolean {
    if (isInShard(this.#shard, fingerprint)) return false
    this.counts.other_shards++
    return true
  }

  #conflict(bytes: Buffer, key: ValueRange | undefined, place: Place): void {
    if (++this.#conflicts > 1 || key === undefined) return
    const text = keyText(bytes, key)
    const shown = Buffer.from(text.bytes.subarray(text.start, text.end)).toString().slice(0, 80)
    this.#context.report.error(
      `the key '${shown}' stands here for another record than before: name the member that tells ` +
        'records apart with --key, or pass repeated ones with --multiset',
      'key-conflict',
      place,
    )
  }
}

/** Up to this length a loop is faster than the call out of JavaScript and the view it needs. */
const SHORT = 256

/** A hash of a record's content, to tell whether a key stands for another record than before. */
function contentHash(bytes: Buffer, { start, end }: ValueRange): number {
  if (end - start > SHORT) return crc32(bytes.subarray(start, end))
  let hash = end - start
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193)
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  return hash ^ (hash >>> 13)
}

function summarise(
  context: Context,
  counts: DedupeCounts,
  completed: CompletedCounts,
  { redo, shard }: DedupeOptions,
): void {
  const { report } = context
  for (const word of ['length', 'content_filter', 'empty'] as const) {
    if (completed[word] === 0) continue
    const again = redo.includes(word)
      ? 'run again'
      : `count as completed (--redo ${word} runs them again)`
    report.note(`${completed[word]} answers are ${SHORTCOMING_WORDS[word]}: they ${again}`)
  }
  if (counts.repeated > 0) {
    report.warning(
      `${counts.repeated} records repeat a key and were not passed on (--multiset does)`,
    )
  }
  const others = shard === undefined ? '' : `, ${counts.other_shards} of other shards`
  report.note(
    `${counts.records} records: ${counts.passed} passed on, ${counts.completed} completed, ` +
      `${counts.repeated} repeated, ${counts.invalid} invalid${others}`,
  )
}

const SHORTCOMING_WORDS = {
  length: 'cut by the token limit',
  content_filter: 'cut by a content filter',
  empty: 'empty',
}
