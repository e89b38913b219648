import type { Context } from '../../cli/command.ts'
import { LineJudge } from '../../core/line-judge.ts'
import { problemText } from '../../core/problem-text.ts'
import { EXIT, type Place } from '../../core/tool-error.ts'
import { OutputFile } from '../../files/output-file.ts'
import type { LineBlock } from '../../streams/line-blocks.ts'
import { forEachInput } from '../inputs.ts'
import { operandFiles } from '../operand-files.ts'
import { contentOf, RECORD_POLICY } from '../record-lines.ts'
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
  const outputs = await openOutputs(context, settings, names)
  const lines = new RecordLines(context, new Exporter(options, settings, outputs))
  let worst: number = EXIT.trouble
  let written = false
  try {
    const input = { blockSize: options.readSize, outputs: [...names, options.stats] }
    worst = await forEachInput(context, files, input, (file, blocks) =>
      lines.file(file.name, blocks),
    )
    // A file stands for all of its input, or stays what it was.
    if (worst !== EXIT.trouble || names.length === 0) {
      await outputs.train.commit()
      await outputs.eval?.commit()
      written = true
    }
  } finally {
    if (!written) for (const output of [outputs.train, outputs.eval]) output?.discard()
    await writeStats(context, options.stats, lines.counts(outputs))
  }
  if (!written) context.report.error(`nothing was written to ${names.join(' and ')}`)
  else context.report.note(lines.summary(outputs))
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
    const file = new OutputFile(name)
    return form === 'parquet' ? ParquetOutput.create(file) : new LinesOutput(file.fd, file)
  }
  const train = await open(names[0])
  if (names[1] === undefined) return { train, eval: undefined }
  try {
    return { train, eval: await open(names[1]) }
  } catch (error) {
    train.discard()
    throw error
  }
}

/** Reads lines as records, and names those that are none. */
class RecordLines {
  invalid = 0
  blank = 0
  #context: Context
  #exporter: Exporter
  #judge = new LineJudge(RECORD_POLICY)

  constructor(context: Context, exporter: Exporter) {
    this.#context = context
    this.#exporter = exporter
  }

  async file(name: string, blocks: AsyncIterable<LineBlock>): Promise<void> {
    let line = 1
    for await (const block of blocks) {
      line = this.#block(name, block, line)
      await this.#exporter.settle()
    }
  }

  counts({ train, eval: evaluation }: Outputs): object {
    const { records, exported, leftOut } = this.#exporter
    return {
      records: records + this.invalid,
      exported,
      left_out: records - exported,
      invalid: this.invalid,
      rows: train.rows + (evaluation?.rows ?? 0),
      ...(evaluation && { train: train.rows, eval: evaluation.rows }),
      left_out_by_reason: leftOut,
      blank_lines: this.blank,
    }
  }

  summary({ train, eval: evaluation }: Outputs): string {
    const { records, leftOut } = this.#exporter
    const rows = evaluation
      ? `${train.rows + evaluation.rows} rows (train ${train.rows}, eval ${evaluation.rows})`
      : `${train.rows} rows`
    const out = Object.entries(leftOut).map(([why, count]) => `${count} left out (${why})`)
    const parts = [rows, ...out, `${this.invalid} invalid`]
    return `${records + this.invalid} records: ${parts.join(', ')}`
  }

  #block(file: string, block: LineBlock, firstLine: number): number {
    const { bytes, end } = block
    const judge = this.#judge
    let line = firstLine
    judge.begin(bytes, end)
    for (let at = 0; at < end; line++) {
      const start = at
      const clean = judge.line(start)
      at = judge.terminated ? judge.end + 1 : judge.end
      const range = clean ? { start, end: judge.end } : contentOf(judge, bytes, start)
      if (range === undefined) {
        if (!block.cut || judge.terminated) this.#badLine(bytes, start, { file, line })
        continue
      }
      while (bytes[range.start]! <= 0x20) range.start++
      while (bytes[range.end - 1]! <= 0x20) range.end--
      const isRecord =
        bytes[range.start] === 0x7b && this.#exporter.record(judge.scanner, bytes, range)
      if (!isRecord) this.#noRecord({ file, line })
    }
    return line
  }

  #badLine(bytes: Buffer, start: number, place: Place): void {
    const { problems, end } = this.#judge
    const { code, at } = problems[0]!
    if (code === 'blank') {
      this.blank++
      return
    }
    this.invalid++
    const column = at - start + 1
    this.#context.report.error(problemText(code, bytes, at, end), code, { ...place, column })
  }

  #noRecord(place: Place): void {
    this.invalid++
    const message =
      'no record of answers: it has neither conversations, messages, response nor text'
    this.#context.report.error(message, 'no-conversation', place)
  }
}
