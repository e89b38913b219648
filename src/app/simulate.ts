import type { Context } from '../cli/command.ts'
import { optionName } from '../cli/option.ts'
import { EXIT, errnoOf, ioError, usageError } from '../core/tool-error.ts'
import { FaultSpecError } from '../simulator/faults.ts'
import { type GivenOptions, OptionError } from '../simulator/options.ts'
import { OutageSpecError } from '../simulator/outages.ts'
import { type Simulator, startSimulator } from '../simulator/server.ts'
import { checkOutputs } from './inputs.ts'
import { writeStats } from './stats.ts'

/**
 * The program of simulate-server: serves until a signal comes.
 *
 * @throws ToolError `usage` where operands are given: it reads no file
 */
export async function simulate(
  context: Context,
  options: GivenOptions,
  stats: string | undefined,
  operands: readonly string[],
): Promise<number> {
  if (operands.length > 0) throw usageError(`unexpected operand '${operands[0]}'`)
  checkOutputs(context, [stats], false)
  const server = await start(options)
  context.report.note(`listening on ${server.url}/v1`)
  await context.print(`${server.url}/v1\n`)
  await new Promise<void>((resolve) => context.interrupt.onSignal(() => resolve()))
  const counts = server.stats()
  await server.close()
  await writeStats(context, stats, counts)
  return EXIT.ok
}

async function start(options: GivenOptions): Promise<Simulator> {
  try {
    return await startSimulator(options)
  } catch (error) {
    if (error instanceof OptionError) {
      throw usageError(error.message.replace(error.option, optionName(error.option)))
    }
    if (error instanceof FaultSpecError || error instanceof OutageSpecError) {
      throw usageError(error.message)
    }
    if (errnoOf(error) === 'EADDRINUSE') {
      throw usageError(
        `port ${options.port} is taken: choose another with --port (0: any free one)`,
      )
    }
    throw ioError(error, `port ${options.port}`, 'listen')
  }
}
