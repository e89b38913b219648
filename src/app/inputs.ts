import { fstatSync, type Stats } from 'node:fs'
import type { Context } from '../cli/command.ts'
import type { ByteReader } from '../core/byte-reader.ts'
import { EXIT, Interrupted, ToolError } from '../core/tool-error.ts'
import { type Input, openInput } from '../files/input.ts'
import { type BlockOptions, type LineBlock, lineBlocks } from '../streams/line-blocks.ts'

export interface InputOptions extends BlockOptions {
  /** Output may be one of the inputs, as when a pipeline appends to what it has read. */
  mayBeOutput?: boolean
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
  for (const operand of operands.length > 0 ? operands : ['-']) {
    try {
      const input = await openInput(operand, context.stdin)
      context.interrupt.onSignal(() => void input.close())
      if (!options.mayBeOutput) refuseOwnOutput(context.stdout.fd, input)
      const reader = new InterruptibleReader(input.reader, context)
      await use(input, lineBlocks(reader, options))
      await input.close()
    } catch (error) {
      if (!(error instanceof ToolError)) throw error
      context.report.error(error.message, error.code, error.place)
      worst = Math.max(worst, error.exitCode)
    }
  }
  return worst
}

/** Turns the end of input that a signal brings about into an exception. */
class InterruptibleReader implements ByteReader {
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

/** `tool f > f` would read what it writes, or has emptied the file already. */
function refuseOwnOutput(outputFd: number, input: Input): void {
  const output = fstatSync(outputFd)
  if (output.isFile() && isSameFile(output, input.stats)) {
    throw new ToolError('same-file', 'the input is also the output: write to another file', {
      place: { file: input.name },
    })
  }
}

/** Whether two stats are of the same file, by whatever names. */
export function isSameFile(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino
}
