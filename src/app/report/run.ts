import type { Context } from '../../cli/command.ts'
import type { ValueRange } from '../../core/field.ts'
import { FILE_SENTENCES, kindIsClear } from '../../core/file-kind.ts'
import { printable } from '../../core/printable.ts'
import { advice } from '../../core/report-advice.ts'
import { type FullReport, reportText } from '../../core/report-text.ts'
import { RunReport } from '../../core/run-report.ts'
import { checkCounts, ImpossibleValue } from '../../core/told-values.ts'
import { EXIT, ToolError } from '../../core/tool-error.ts'
import { TraceReader } from '../../core/trace-report.ts'
import { writeAll } from '../../files/fd-sink.ts'
import { OutputFile } from '../../files/output-file.ts'
import { blocksForOne } from '../block-memory.ts'
import { checkOutputs, forEachInput, type InputOptions, refuseInputs } from '../inputs.ts'
import { noRunRecords } from '../no-shape.ts'
import { ObjectLines, type UseObject } from '../object-lines.ts'
import { operandFiles } from '../operand-files.ts'
import type { ReportOptions } from './options.ts'
import { recordsInto } from './records.ts'

/** A line of a trace or of --stats is no longer than this. */
const LONGEST_LINE = 16 * 1024 * 1024

const NO_COUNTS = 'no counts of a run'
const SECOND_COUNTS = {
  message: 'more counts of a run: only the first are told',
  code: 'not-a-record',
}

interface Found {
  code: number
  invalid: number
}

/** The program of report-run: what a run has left behind in, what happened out. */
export async function reportRun(
  context: Context,
  options: ReportOptions,
  operands: string[],
): Promise<number> {
  const files = await operandFiles(operands)
  const others = [options.failures, options.stats, options.trace]
  refuseInputs(context, [options.html], [...files, ...others.filter((file) => file !== undefined)])
  checkOutputs(context, [options.html], true)
  const report = new RunReport()
  const trace = new TraceReader()
  let stats: Record<string, unknown> | undefined
  const answers = recordsInto(report)
  let damaged = false
  let worst: number = EXIT.ok
  const read: Read = async (files, what, use) => {
    const found = await readObjects(context, options, files, what, use)
    damaged ||= found.invalid > 0
    worst = Math.max(worst, found.code)
    return found
  }
  if (options.failures !== undefined) {
    report.invalid += (await read([options.failures], 'no record of a failure', answers)).invalid
  }
  report.invalid += (await read(files, 'no record of an answer or a failure', answers)).invalid
  if (options.stats !== undefined) {
    stats = await readCounts(context, options.stats, read)
    damaged ||= stats === undefined
  }
  if (options.trace !== undefined) {
    await read([options.trace], 'no state of a run', (_, bytes, range) =>
      trace.add(parse(bytes, range) ?? null, range.start),
    )
  }
  const counted = report.toJSON()
  const traced = options.trace === undefined ? undefined : trace.toJSON()
  const full: FullReport = {
    ...counted,
    advice: advice(counted, traced),
    ...(stats && { stats }),
    ...(traced && { trace: traced }),
  }
  if (options.html !== undefined) await writeHtml(context, options.html, full)
  const text = options.json ? `${printable(JSON.stringify(full))}\n` : reportText(full)
  await writeAll(context.stdout.fd, Buffer.from(text), '<stdout>')
  return Math.max(worst, damaged ? EXIT.data : EXIT.ok)
}

type Read = (files: readonly string[], what: string, use: UseObject) => Promise<Found>

/** The one object of --stats; undefined where there is none, which has been named. */
async function readCounts(
  context: Context,
  file: string,
  read: Read,
): Promise<Record<string, unknown> | undefined> {
  let stats: Record<string, unknown> | undefined
  const found = await read([file], NO_COUNTS, (_, bytes, range) => {
    if (stats !== undefined) return { ...SECOND_COUNTS, at: range.start }
    const told = parse(bytes, range) as typeof stats
    checkCounts(told, range.start)
    stats = told
    return stats !== undefined
  })
  // What else is wrong with the file has been told.
  if (stats === undefined && found.code === EXIT.ok && found.invalid === 0) {
    context.report.error(`${NO_COUNTS} in it`, 'no-shape', { file })
  }
  return stats
}

/** Reads files, and names what in them is of no use, or the file as a whole. */
async function readObjects(
  context: Context,
  { readSize, html }: ReportOptions,
  files: readonly string[],
  what: string,
  use: UseObject,
): Promise<Found> {
  const useless = { message: what, code: 'not-a-record' }
  const lines = new ObjectLines(context, useless, possible(use), (file, found) =>
    noRunRecords(file, found, what),
  )
  let code: number = EXIT.ok
  const input: InputOptions = {
    headComplete: kindIsClear,
    blocksOf: (file) => blocksForOne(file, readSize),
    outputs: [html],
  }
  const read = await forEachInput(context, files, input, (file, blocks) =>
    lines.file(file.name, blocks).catch((error: unknown) => {
      // What is no file of a run is damage to a report, which tells of the others.
      if (!isOtherFile(error)) throw error
      code = EXIT.data
      context.report.error(error.message, error.code, error.place)
    }),
  )
  return { code: Math.max(code, read), invalid: lines.invalid }
}

/** What has an impossible value is named, and left out as a whole. */
function possible(use: UseObject): UseObject {
  return (scanner, bytes, range) => {
    try {
      return use(scanner, bytes, range)
    } catch (error) {
      if (!(error instanceof ImpossibleValue)) throw error
      return { message: error.message, code: 'impossible-value', at: error.at }
    }
  }
}

function isOtherFile(error: unknown): error is ToolError {
  if (!(error instanceof ToolError)) return false
  return ['no-shape', 'not-jsonl'].includes(error.code) || error.code in FILE_SENTENCES
}

function parse(bytes: Buffer, { start, end }: ValueRange): unknown {
  if (end - start > LONGEST_LINE) return undefined
  return JSON.parse(bytes.toString('utf8', start, end)) as unknown
}

async function writeHtml(context: Context, name: string, report: FullReport): Promise<void> {
  const { reportPage } = await import('./page.ts')
  const page = await reportPage(report)
  const file = await OutputFile.open(name, context.interrupt.reading)
  try {
    await writeAll(file.fd, Buffer.from(page), name)
  } catch (error) {
    file.discard()
    throw error
  }
  file.commit()
}
