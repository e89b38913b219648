import type { Context } from '../../cli/command.ts'
import { KEY_FIELDS } from '../../core/key.ts'
import { PROMPT_FIELDS, SYSTEM_FIELDS } from '../../core/prompt-shape.ts'
import { EXIT, usageError } from '../../core/tool-error.ts'
import { STDIN_NAME } from '../../files/input.ts'
import { checkOutputs, isUnread, refuseInputs, reportTrouble } from '../inputs.ts'
import { operandFiles } from '../operand-files.ts'
import { noteIdle, resolveShard } from '../shard.ts'
import { writeStats } from '../stats.ts'
import { CounterLine } from './counter-line.ts'
import { Extractor } from './extractor.ts'
import type { ExtractOptions } from './options.ts'
import type { ColumnWish } from './parquet-rows.ts'
import { ReadProgress } from './read-progress.ts'
import { readRows } from './row-sources.ts'

/** Members that the records have anyway. */
const WRITTEN = new Set(['id', 'custom_id', 'messages', 'turns', 'prompt', 'body'])

/** The program of extract-prompts: rows of data sets in, records for fanout-complete out. */
export async function extract(
  context: Context,
  given: ExtractOptions,
  operands: string[],
): Promise<number> {
  checkOptions(given)
  const { rejects, stats } = given
  const { shard, names } = resolveShard(context, given, { rejects, stats })
  const options = { ...given, ...names }
  const files = await operandFiles(operands)
  refuseInputs(context, [options.rejects, options.stats], files)
  checkOutputs(context, [options.rejects, options.stats], true)
  const extractor = new Extractor(context, options, shard)
  const { emitter, report } = extractor
  const progress = new ReadProgress(files)
  const line = new CounterLine(
    context,
    () => `${extractor.rows} rows read, ${emitter.prompts} prompts, ${report.rejected} unusable`,
    () => shareDone(options, emitter.prompts, progress.share),
  )
  progress.onReading = () => line.start()
  let worst: number = EXIT.ok
  try {
    for (const file of files) {
      worst = Math.max(worst, await readFile(context, file, extractor, options, progress))
      if (extractor.done) break
    }
    await emitter.finish()
  } finally {
    line.stop()
    await emitter.close()
    await report.close()
    await writeStats(context, options.stats, countsOf(extractor))
  }
  if (isUnread(worst, extractor.rows)) return worst
  context.report.note(summary(extractor))
  if (emitter.records === 0) noteIdle(context, shard, 'it has no prompt')
  const flawed = report.rejected > 0 || report.fileProblems > 0
  return Math.max(worst, flawed ? EXIT.data : EXIT.ok)
}

function checkOptions({ sample, keep, seed }: ExtractOptions): void {
  if (sample !== undefined && (sample <= 0 || sample > 1)) {
    throw usageError('--sample takes a rate above 0 and at most 1, such as 0.1')
  }
  if (seed !== undefined && sample === undefined) {
    throw usageError('--seed is for --sample; --shuffle takes its own seed')
  }
  for (const name of keep) {
    if (WRITTEN.has(name)) {
      throw usageError(
        `--keep ${name} cannot be: that member of the record is made by this command`,
      )
    }
  }
}

/** With --limit the run may end before the files do. */
function shareDone(
  { limit, shuffle }: ExtractOptions,
  prompts: number,
  read: number | undefined,
): number | undefined {
  if (limit === undefined || shuffle !== undefined) return read
  return Math.max(read ?? 0, Math.min(1, prompts / limit))
}

async function readFile(
  context: Context,
  file: string,
  extractor: Extractor,
  options: ExtractOptions,
  progress: ReadProgress,
): Promise<number> {
  extractor.beginFile()
  progress.begin(file)
  const outputs = [options.rejects, options.stats]
  const { readSize } = options
  try {
    const columns = columnsFor(options)
    await readRows(context, file, extractor, { outputs, readSize, columns, progress })
    await extractor.endFile(file === '-' ? STDIN_NAME : file)
    return EXIT.ok
  } catch (error) {
    // What the rest of the file would have said of its shape nobody knows.
    extractor.shapeKnown()
    const code = reportTrouble(context, error)
    await extractor.settle()
    return code
  }
}

/** The columns of a Parquet file that are read: others may be large. */
function columnsFor({ promptField, key, keep }: ExtractOptions): ColumnWish {
  const both = (name: string): string[] => [name, name.split('.')[0]!]
  const prompts = promptField === undefined ? [...PROMPT_FIELDS] : both(promptField)
  const keys = key === undefined ? [...KEY_FIELDS] : both(key)
  return {
    prompts: [...new Set(prompts)],
    inside: promptField?.includes('.') ?? false,
    others: [...keys, 'input', ...SYSTEM_FIELDS, ...keep.flatMap(both)],
  }
}

function countsOf({ rows, blankLines, report, emitter }: Extractor): object {
  const leftOut = { ...emitter.leftOut, other_shards: report.otherShards }
  return {
    rows,
    prompts: emitter.prompts,
    rejected: report.rejected,
    left_out: Object.values(leftOut).reduce((sum, count) => sum + count, 0),
    records: emitter.records,
    other_shards: emitter.otherShards,
    rejected_by_reason: report.counts,
    left_out_by_reason: leftOut,
    file_problems: report.fileProblems,
    blank_lines: blankLines,
  }
}

function summary({ rows, report, emitter }: Extractor): string {
  const { leftOut, prompts, records } = emitter
  const parts = [`${prompts} prompts`]
  if (records !== prompts) parts.push(`${records} records`)
  if (emitter.otherShards > 0) parts.push(`${emitter.otherShards} records of other shards`)
  parts.push(`${report.rejected} unusable`)
  for (const [why, count] of Object.entries(leftOut)) {
    if (count > 0) parts.push(`${count} left out (${why.replace('_', ' ')})`)
  }
  return `${rows} rows: ${parts.join(', ')}`
}
