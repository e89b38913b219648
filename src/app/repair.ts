import { realpathSync, statSync } from 'node:fs'
import type { Context } from '../cli/command.ts'
import { FILE_SENTENCES, fileKind, kindIsClear } from '../core/file-kind.ts'
import { REPAIR_POLICY, Repairer } from '../core/repair.ts'
import type { RepairCounts } from '../core/repair-counts.ts'
import { EXIT, Interrupted, ToolError, usageError } from '../core/tool-error.ts'
import type { FdSink } from '../files/fd-sink.ts'
import type { InPlaceFile } from '../files/in-place.ts'
import type { Input } from '../files/input.ts'
import type { FileLock } from '../files/lock.ts'
import { RemovedFile } from '../files/removed-file.ts'
import type { LineBlock } from '../streams/line-blocks.ts'
import { checkOutputs, forEachInput, isSameFile, operandsOrStdin, refuseInputs } from './inputs.ts'
import { blocksFor, isWorthAThread, lookedOver, notLookedOver } from './look-ahead.ts'
import {
  CheckDestination,
  type Destination,
  FilterDestination,
  InPlaceDestination,
  standardOutput,
} from './repair-destinations.ts'
import { Pieces } from './repair-pieces.ts'
import { addCounts, isClean, noTotals, summary } from './repair-report.ts'
import { writeStats } from './stats.ts'

export interface RepairOptions {
  quiet: boolean
  /** The suffix for the old file, empty for none; undefined: a filter. */
  inPlace: string | undefined
  check: boolean
  tail: boolean
  removed: string | undefined
  salvage: boolean
  salvaged: string | undefined
  readSize: number | undefined
  stats: string | undefined
}

/** The program of repair-truncated. */
export async function repair(
  context: Context,
  options: RepairOptions,
  operands: string[],
): Promise<number> {
  checkUsage(options, operands)
  const outputs = [options.removed, options.salvaged, options.stats]
  refuseInputs(context, outputs, operandsOrStdin(operands))
  const beside = outputsBeside(options, operands)
  const toStdout = options.inPlace === undefined && !options.check && !options.tail
  checkOutputs(context, [...outputs, ...beside], toStdout)
  if (options.tail || (options.inPlace !== undefined && !options.check)) refuseNoFiles(operands)
  if (options.tail) {
    const { repairTails } = await import('./repair-tails.ts')
    return repairTails(context, options, operands)
  }
  const run = new RepairRun(context, options)
  try {
    const met = await forEachInput(
      context,
      operands,
      {
        blockSize: options.readSize,
        headComplete: kindIsClear,
        blocksOf: (input) => blocksFor(input, options.readSize),
        outputs,
        whole: options.inPlace !== undefined,
      },
      (input, blocks) => run.file(input, blocks),
    )
    return Math.max(met, run.exitCode)
  } finally {
    await run.close()
    await writeStats(context, options.stats, run.counts)
  }
}

/** Whether a second thread looks over the blocks of this input. */
function usesThread(input: Input, { readSize }: RepairOptions): boolean {
  return readSize === undefined && isWorthAThread(input)
}

function checkUsage(options: RepairOptions, operands: string[]): void {
  const { inPlace, check, tail, salvage, salvaged, removed } = options
  if (inPlace?.includes('/')) throw usageError('the suffix of --in-place may hold no slash')
  if (tail && inPlace === undefined && !check) {
    throw usageError('--tail cuts files in place: give it with --in-place or --check')
  }
  if ((inPlace !== undefined || tail) && (operands.length === 0 || operands.includes('-'))) {
    const option = tail ? '--tail' : '--in-place'
    throw usageError(`${option} needs files by name, not standard input`)
  }
  if (salvage && salvaged === undefined) {
    throw usageError(
      '--salvage needs --salvaged FILE, which gets the records that it closes: they are no whole ones',
    )
  }
  if (salvaged !== undefined && !salvage) {
    throw usageError('--salvaged FILE gets what --salvage makes: give both')
  }
  if (salvaged !== undefined && salvaged === removed) {
    throw usageError('--salvaged and --removed name the same file')
  }
}

/**
 * The names that a repair in place writes to beside each file: that of the old one, and that of the
 * removed bytes, which must stay.
 *
 * @throws ToolError where the name of an old file is that of another input
 */
function outputsBeside(
  { inPlace, check, tail, removed }: RepairOptions,
  operands: readonly string[],
): string[] {
  if (inPlace === undefined || check) return []
  const suffix = tail ? '' : inPlace
  const files = new Set(operands.map(realName))
  const names: string[] = []
  for (const file of files) {
    if (file === undefined) continue
    if (suffix !== '' && files.has(file + suffix)) {
      const message =
        'the old file would be kept in the place of another input: take another suffix'
      throw new ToolError('same-file', message, { place: { file: file + suffix } })
    }
    if (suffix !== '') names.push(file + suffix)
    if (removed === undefined) names.push(`${file}.removed.jsonl`)
  }
  return names.filter(canBe)
}

/** The name behind all links; undefined for what is told where it is read. */
function realName(file: string): string | undefined {
  try {
    return realpathSync(file)
  } catch {
    return undefined
  }
}

/** Whether a file can have this name; where not, that matters only when there is something to write. */
function canBe(file: string): boolean {
  try {
    return statSync(file, { throwIfNoEntry: false })?.isDirectory() !== true
  } catch {
    return false
  }
}

/** Before one is opened: a FIFO would keep us waiting for its writer. */
function refuseNoFiles(files: readonly string[]): void {
  for (const file of files) {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (stats === undefined || stats.isFile() || stats.isDirectory()) continue
    const message = 'only a regular file can be repaired in place'
    throw new ToolError('not-a-file', message, { place: { file } })
  }
}

class RepairRun {
  readonly counts = noTotals()
  exitCode: number = EXIT.ok
  #context: Context
  #options: RepairOptions
  #out: FdSink | undefined
  #removed: RemovedFile | undefined
  #salvaged: RemovedFile | undefined

  constructor(context: Context, options: RepairOptions) {
    this.#context = context
    this.#options = options
    if (options.check) return
    if (options.removed !== undefined) this.#removed = new RemovedFile(options.removed)
    if (options.salvaged !== undefined) this.#salvaged = new RemovedFile(options.salvaged)
  }

  async file(input: Input, blocks: AsyncIterable<LineBlock>): Promise<void> {
    const { inPlace, check } = this.#options
    const opened = inPlace === undefined || check ? undefined : await openInPlace(input)
    const lock = opened && (await this.#lock(opened))
    const removed =
      this.#removed ??
      (opened && new RemovedFile(`${opened.path}.removed.jsonl`, opened.stats.mode))
    const pieces = new Pieces(
      this.#context,
      { removed, salvaged: this.#salvaged },
      check ? 'would be removed' : 'removed; --removed FILE would keep them',
    )
    const destination = this.#destination(opened, pieces)
    try {
      await pieces.begin()
      await this.#repair(input, blocks, destination, pieces)
    } finally {
      lock?.release()
      if (removed !== this.#removed) await removed?.close()
    }
  }

  async #lock(opened: InPlaceFile): Promise<FileLock | undefined> {
    const { lockTarget } = await import('./repair-tails.ts')
    return lockTarget(this.#context, opened.path).catch(async (error: unknown) => {
      await opened.close()
      throw error
    })
  }

  async close(): Promise<void> {
    await this.#removed?.close()
    await this.#salvaged?.close()
  }

  #destination(opened: InPlaceFile | undefined, pieces: Pieces): Destination {
    if (this.#options.check) return new CheckDestination(pieces)
    if (opened) return new InPlaceDestination(opened, pieces, this.#options.inPlace ?? '')
    this.#out ??= standardOutput(this.#context)
    return new FilterDestination(this.#out, pieces)
  }

  async #repair(
    input: Input,
    blocks: AsyncIterable<LineBlock>,
    destination: Destination,
    pieces: Pieces,
  ): Promise<void> {
    const repairer = new Repairer(input.name, destination, `${input.compression}-truncated`)
    let damage: ToolError | undefined
    const whole = untilDamage(blocks, (error) => {
      damage = error
    })
    try {
      const looked = usesThread(input, this.#options)
        ? lookedOver(whole, { kind: 'clean', policy: REPAIR_POLICY })
        : notLookedOver(whole)
      for await (const { block, result } of looked) {
        const kind = block.offset === 0 ? fileKind(block.bytes, block.end) : undefined
        if (kind !== undefined && kind !== 'undecided') {
          const place = { file: input.name }
          throw new ToolError(kind, FILE_SENTENCES[kind], { exitCode: EXIT.data, place })
        }
        repairer.block(block, result?.clean ? result.lines : undefined)
        await destination.settle(block.offset + block.end)
      }
      repairer.finish()
      await destination.commit()
    } catch (error) {
      await this.#endEarly(error, repairer, destination)
      throw error
    }
    this.#finished(input.name, repairer.counts, repairer.exitCode, pieces)
    if (damage !== undefined) throw damage
  }

  async #endEarly(error: unknown, repairer: Repairer, destination: Destination): Promise<void> {
    if (error instanceof Interrupted) await destination.interrupt()
    else await destination.abandon()
    if (error instanceof ToolError && error.exitCode === EXIT.data) this.counts.refused!++
    else if (destination.stays && repairer.hasRecord) addCounts(this.counts, repairer.counts)
  }

  #finished(file: string, counts: RepairCounts, exitCode: number, pieces: Pieces): void {
    const { check } = this.#options
    addCounts(this.counts, counts)
    pieces.tellRest(file)
    const code = check && !isClean(counts) ? EXIT.data : exitCode
    this.exitCode = Math.max(this.exitCode, code)
    this.#context.report.note(`${file}: ${summary(counts, check)}`)
  }
}

/** @throws ToolError where the input is no regular, uncompressed file */
async function openInPlace(input: Input): Promise<InPlaceFile> {
  const { compressedRefusal, InPlaceFile } = await import('../files/in-place.ts')
  if (input.compression !== undefined) {
    throw compressedRefusal(input.name, input.compression)
  }
  const file = await InPlaceFile.open(input.name)
  if (!isSameFile(file.stats, input.stats)) {
    await file.close()
    throw new ToolError('changed', 'another process is replacing it: left as it is', {
      place: { file: input.name },
    })
  }
  return file
}

/** Gives the blocks up to where the data is damaged, instead of throwing that at their reader. */
async function* untilDamage(
  blocks: AsyncIterable<LineBlock>,
  note: (damage: ToolError) => void,
): AsyncGenerator<LineBlock, void, void> {
  try {
    yield* blocks
  } catch (error) {
    if (!(error instanceof ToolError) || error.exitCode !== EXIT.data) throw error
    note(error)
  }
}
