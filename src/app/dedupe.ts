import type { Context } from '../cli/command.ts'
import { CompletedIndex } from '../core/completed-index.ts'
import { KeyRule } from '../core/key.ts'
import { counted } from '../core/quantity.ts'
import { isInShard } from '../core/shard.ts'
import { EXIT, usageError } from '../core/tool-error.ts'
import type { Input } from '../files/input.ts'
import {
  type CompletedCounts,
  noCompletedCounts,
  readCompleted,
  refuseCompleted,
} from './completed-files.ts'
import { type DedupeCounts, DedupeFilter } from './dedupe-filter.ts'
import { checkOutputs, forEachInput, isUnread, operandsOrStdin, refuseInputs } from './inputs.ts'
import { blocksFor, isWorthAThread } from './look-ahead.ts'
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
  refuseInputs(context, [names.stats], operandsOrStdin(operands))
  checkOutputs(context, [names.stats], true)
  await refuseCompleted(context, [names.stats], options.completed)
  const rule = new KeyRule(options.key)
  const index = new CompletedIndex(options.multiset)
  const completed = noCompletedCounts()
  const filter = new DedupeFilter(context, rule, index, shard)
  const usesThread = (input: Input): boolean =>
    options.readSize === undefined && isWorthAThread(input)
  let worst: number = EXIT.ok
  let unread = false
  try {
    worst = await readCompleted(context, options.completed, {
      rule,
      counts: completed,
      redo: new Set(options.redo),
      onExpected: (lines) => index.expect(lines),
      onAnswer: (words, from) => {
        if (isInShard(shard, words, from)) index.complete(words, from)
      },
    })
    const met = await forEachInput(
      context,
      operands,
      {
        blockSize: options.readSize,
        blocksOf: (input) => blocksFor(input, options.readSize),
      },
      (input, blocks) => filter.file(input, blocks, usesThread(input)),
    )
    unread = isUnread(met, filter.counts.records)
    worst = Math.max(worst, met, filter.verdict())
  } finally {
    await writeStats(context, names.stats, { ...filter.counts, completed_files: completed })
  }
  if (unread) return worst
  summarise(context, filter.counts, completed, options)
  if (filter.counts.passed === 0) noteIdle(context, shard, 'no record of it is left')
  return worst
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
    const answers = counted(completed[word], 'answer is', 'answers are')
    const [they, them] = completed[word] === 1 ? ['it counts', 'it'] : ['they count', 'them']
    const again = redo.includes(word)
      ? 'to be run again'
      : `${they} as completed (--redo ${word} runs ${them} again)`
    report.note(`${answers} ${SHORTCOMING_WORDS[word]}: ${again}`)
  }
  if (counts.repeated > 0) {
    const repeat = ['record repeats a key and was', 'records repeat a key and were'] as const
    report.warning(`${counted(counts.repeated, ...repeat)} not passed on (--multiset does)`)
  }
  const others = shard === undefined ? '' : `, ${counts.other_shards} of other shards`
  report.note(
    `${counted(counts.records, 'record')}: ${counts.passed} passed on, ${counts.completed} completed, ` +
      `${counts.repeated} repeated, ${counts.invalid} invalid${others}`,
  )
}

const SHORTCOMING_WORDS = {
  length: 'cut by the token limit',
  content_filter: 'cut by a content filter',
  empty: 'empty',
}
