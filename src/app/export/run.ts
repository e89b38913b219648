import type { Context } from '../../cli/command.ts'
import { kindIsClear } from '../../core/file-kind.ts'
import { EXIT } from '../../core/tool-error.ts'
import { OutputFile } from '../../files/output-file.ts'
import { blocksForOne } from '../block-memory.ts'
import { checkOutputs, forEachInput, type InputOptions, isUnread, refuseInputs } from '../inputs.ts'
import { noAnswers } from '../no-shape.ts'
import { ObjectLines, type UseObject } from '../object-lines.ts'
import { operandFiles } from '../operand-files.ts'
import { writeStats } from '../stats.ts'
import { Exporter, type Outputs } from './exporter.ts'
import type { ExportOptions } from './options.ts'
import { LinesOutput, ParquetOutput, partName, type RowOutput } from './outputs.ts'
import { type ExportSettings, exportSettings } from './settings.ts'

/** The program of export-conversations: records of answers in, a trainer's rows out. */
export async function exportConversations(
  context: Context,
  options: ExportOptions,
  operands: string[],
): Promise<number> {
  const settings = exportSettings(options)
  const files = await operandFiles(operands)
  const names = outputNames(options, settings)
  refuseInputs(context, [...names, options.stats], files)
  checkOutputs(context, [...names, options.stats], names.length === 0)
  const outputs = await openOutputs(context, settings, names)
  const exporter = new Exporter(options, settings, outputs)
  const use: UseObject = (scanner, bytes, range) => exporter.record(scanner, bytes, range)
  const lines = new ObjectLines(context, NO_RECORD, use, noAnswers)
  let worst: number = EXIT.trouble
  let written = false
  try {
    const input: InputOptions = {
      headComplete: kindIsClear,
      blocksOf: (file) => blocksForOne(file, options.readSize),
      outputs: [...names, options.stats],
    }
    worst = await forEachInput(context, files, input, (file, blocks) =>
      lines.file(file.name, blocks, () => exporter.settle()),
    )
    // A file stands for all of its input, or stays what it was.
    if (worst !== EXIT.trouble || names.length === 0) {
      await outputs.train.commit()
      await outputs.eval?.commit()
      written = true
    }
  } finally {
    if (!written) for (const output of [outputs.train, outputs.eval]) await output?.discard()
    await writeStats(context, options.stats, counts(lines, exporter, outputs))
  }
  if (!written) context.report.error(`nothing was written to ${names.join(' and ')}`)
  else if (!isUnread(worst, exporter.records + lines.invalid))
    context.report.note(summary(lines, exporter, outputs))
  return Math.max(worst, lines.invalid > 0 ? EXIT.data : EXIT.ok)
}

function outputNames({ output }: ExportOptions, { trainShare }: ExportSettings): string[] {
  if (output === undefined) return []
  return trainShare === undefined ? [output] : [partName(output, 'train'), partName(output, 'eval')]
}

async function openOutputs(
  context: Context,
  { form }: ExportSettings,
  names: readonly string[],
): Promise<Outputs> {
  const open = async (name: string | undefined): Promise<RowOutput> => {
    if (name === undefined) return new LinesOutput(context.stdout.fd)
    const file = await OutputFile.open(name, context.interrupt.reading)
    return form === 'parquet' ? ParquetOutput.create(file) : new LinesOutput(file.fd, file)
  }
  const train = await open(names[0])
  if (names[1] === undefined) return { train, eval: undefined }
  try {
    return { train, eval: await open(names[1]) }
  } catch (error) {
    await train.discard()
    throw error
  }
}

const NO_RECORD = {
  message: 'no record of answers: it has neither conversations, messages, response nor text',
  code: 'no-conversation',
}

function counts(lines: ObjectLines, exporter: Exporter, outputs: Outputs): object {
  const { records, exported, leftOut } = exporter
  const { train, eval: evaluation } = outputs
  return {
    records: records + lines.invalid,
    exported,
    left_out: records - exported,
    invalid: lines.invalid,
    rows: train.rows + (evaluation?.rows ?? 0),
    ...(evaluation && { train: train.rows, eval: evaluation.rows }),
    left_out_by_reason: leftOut,
    blank_lines: lines.blank,
  }
}

function summary(
  { invalid }: ObjectLines,
  { records, leftOut }: Exporter,
  outputs: Outputs,
): string {
  const { train, eval: evaluation } = outputs
  const rows = evaluation
    ? `${train.rows + evaluation.rows} rows (train ${train.rows}, eval ${evaluation.rows})`
    : `${train.rows} rows`
  const out = Object.entries(leftOut).map(([why, count]) => `${count} left out (${why})`)
  const parts = [rows, ...out, `${invalid} invalid`]
  return `${records + invalid} records: ${parts.join(', ')}`
}
