import { fstatSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Context } from '../cli/command.ts'
import type { ByteReader } from '../core/byte-reader.ts'
import { EXIT, Interrupted, ioError, ToolError } from '../core/tool-error.ts'
import { type Input, openInput } from '../files/input.ts'
import { placeOf } from '../files/place.ts'
import { type BlockOptions, type LineBlock, lineBlocks } from '../streams/line-blocks.ts'

export interface InputOptions extends BlockOptions {
  /** Output may be one of the inputs, as when a pipeline appends to what it has read. */
  mayBeOutput?: boolean
  /** Files that are written to, which no input may be; undefined ones are skipped. */
  outputs?: readonly (string | undefined)[]
  /** How the blocks of this very input are to be read. */
  blocksOf?: (input: Input) => BlockOptions
  /** Read only the bytes that are there when the file is opened, not what is appended meanwhile. */
  whole?: boolean
}

/**
 * Runs `use` over the blocks of every input in turn; none named means standard input. What cannot be
 * read is reported, the others go on, and the exit code says so.
 *
 * @returns the worst exit code met
 * @throws Interrupted when a signal came, ClosedPipe when the output's reader has gone
 */
export async function forEachInput(
  context: Context,
  operands: readonly string[],
  options: InputOptions,
  use: (input: Input, blocks: AsyncGenerator<LineBlock, void, void>) => Promise<void>,
): Promise<number> {
  let worst: number = EXIT.ok
  for (const operand of operandsOrStdin(operands)) {
    try {
      const { input, blocks } = await openBlocks(context, operand, options)
      try {
        await use(input, blocks)
      } finally {
        await input.close()
      }
    } catch (error) {
      worst = Math.max(worst, reportTrouble(context, error))
    }
  }
  return worst
}

/** No operand means standard input. */
export function operandsOrStdin(operands: readonly string[]): readonly string[] {
  return operands.length > 0 ? operands : ['-']
}

/**
 * Opens one input and cuts it into blocks of whole lines.
 *
 * @throws ToolError where it cannot be read or is also the output
 */
export async function openBlocks(
  context: Context,
  operand: string,
  options: InputOptions,
): Promise<{ input: Input; blocks: AsyncGenerator<LineBlock, void, void> }> {
  const input = await openInterruptible(context, operand, options.whole)
  if (!options.mayBeOutput) refuseOwnOutput(fstatSync(context.stdout.fd), input)
  for (const file of options.outputs ?? []) {
    if (file !== undefined) refuseOwnOutput(statSync(file, { throwIfNoEntry: false }), input)
  }
  const reader = new InterruptibleReader(input.reader, context)
  return { input, blocks: lineBlocks(reader, { ...options, ...options.blocksOf?.(input) }) }
}

/**
 * Opens one input, which a signal closes from then on.
 *
 * @param whole read only the bytes that are there now
 * @throws ToolError where it cannot be read, Interrupted where a signal comes before its first bytes
 */
export async function openInterruptible(
  context: Context,
  operand: string,
  whole?: boolean,
): Promise<Input> {
  const { interrupt, stdin } = context
  try {
    const input = await openInput(operand, stdin, { whole, signal: interrupt.reading })
    if (interrupt.signal !== undefined) throw new Interrupted()
    return input
  } catch (error) {
    throw interrupt.signal === undefined ? error : new Interrupted()
  }
}

/**
 * Reports an input that could not be read (to its end); the others go on.
 *
 * @returns its exit code
 * @throws the error where it is none of an input
 */
export function reportTrouble(context: Context, error: unknown): number {
  if (!(error instanceof ToolError)) throw error
  context.report.error(error.message, error.code, error.place)
  return error.exitCode
}

/**
 * Whether not one input could be read: counts of nothing would only say again what its error has said.
 *
 * @param code the worst exit code of the inputs
 * @param count of what was read
 */
export function isUnread(code: number, count: number): boolean {
  return code === EXIT.trouble && count === 0
}

/** Turns the end of input that a signal brings about into an exception. */
export class InterruptibleReader implements ByteReader {
  #source: ByteReader
  #context: Context

  constructor(source: ByteReader, context: Context) {
    this.#source = source
    this.#context = context
  }

  async read(into: Buffer, offset: number, length: number): Promise<number> {
    try {
      const count = await this.#source.read(into, offset, length)
      if (this.#context.interrupt.signal !== undefined) throw new Interrupted()
      return count
    } catch (error) {
      throw this.#context.interrupt.signal === undefined ? error : new Interrupted()
    }
  }
}

/**
 * Refuses, before anything is read or written, to write to a file that is also read.
 *
 * @param outputs undefined ones are skipped, and so is `-`
 * @param inputs `-` is standard input
 * @throws ToolError
 */
export function refuseInputs(
  context: Context,
  outputs: readonly (string | undefined)[],
  inputs: readonly string[],
): void {
  for (const file of outputs) {
    if (file === undefined || file === '-') continue
    const own = placeable(file)
    if (own?.isFile() === false) continue
    for (const input of inputs) {
      const stats = input === '-' ? fstatSync(context.stdin.fd) : found(input)
      const isSame =
        own === undefined || stats === undefined
          ? own === stats && placeOf(input) === placeOf(file)
          : isSameFile(own, stats)
      if (!isSame) continue
      throw new ToolError('same-file', 'the input is also the output: write to another file', {
        place: { file },
      })
    }
  }
}

/**
 * Refuses, before anything is read or written, two outputs that are one file: one would overwrite what
 * the other has written. And one that has no folder, or is one: the end of a run is late to find out.
 *
 * @param outputs undefined ones and `-` are skipped
 * @param stdout whether standard output is written to
 * @throws ToolError `same-file` or `io`
 */
export function checkOutputs(
  context: Context,
  outputs: readonly (string | undefined)[],
  stdout: boolean,
): void {
  const seen: Stats[] = stdout ? [fstatSync(context.stdout.fd)] : []
  const names = new Set<string>()
  for (const file of outputs) {
    if (file === undefined || file === '-') continue
    const own = placeable(file)
    // Devices and pipes take what several write.
    if (own !== undefined && !own.isFile()) continue
    const name = placeOf(file)
    const met = own !== undefined && seen.some((stats) => isSameFile(stats, own))
    if (met || names.has(name)) {
      throw new ToolError('same-file', 'two outputs are the same file: name another one', {
        place: { file },
      })
    }
    if (own !== undefined) seen.push(own)
    names.add(name)
  }
}

/** What is there of an input's name; that it cannot be read is told where it is read. */
function found(file: string): Stats | undefined {
  try {
    return statSync(file, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

/**
 * What is there of an output's name.
 *
 * @throws ToolError where no file can be
 */
function placeable(file: string): Stats | undefined {
  try {
    const own = statSync(file, { throwIfNoEntry: false })
    if (own?.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' })
    if (own === undefined) statSync(`${dirname(placeOf(file))}/.`)
    return own
  } catch (error) {
    throw ioError(error, file, 'write')
  }
}

/** `tool f > f` would read what it writes, or has emptied the file already. */
function refuseOwnOutput(output: Stats | undefined, input: Input): void {
  if (output?.isFile() && isSameFile(output, input.stats)) {
    throw new ToolError('same-file', 'the input is also the output: write to another file', {
      place: { file: input.name },
    })
  }
}

/** Whether two stats are of the same file, by whatever names. */
export function isSameFile(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino
}
