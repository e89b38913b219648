import type { Context } from '../../cli/command.ts'
import { kindIsClear } from '../../core/file-kind.ts'
import { FdSink } from '../../files/fd-sink.ts'
import { RemovedFile } from '../../files/removed-file.ts'
import { checkOutputs, forEachInput, operandsOrStdin, refuseInputs } from '../inputs.ts'
import { blocksFor } from '../look-ahead.ts'
import { writeStats } from '../stats.ts'
import { lineChecks } from './line-checks.ts'
import type { ValidateOptions } from './options.ts'
import { Validator } from './validator.ts'

/** The program of validate-jsonl: valid lines out, a message for each problem, the verdict. */
export async function validate(
  context: Context,
  options: ValidateOptions,
  operands: string[],
): Promise<number> {
  const { rejects: rejected, stats, schema } = options
  const read = [...operandsOrStdin(operands), ...(schema === undefined ? [] : [schema])]
  refuseInputs(context, [rejected, stats], read)
  checkOutputs(context, [rejected, stats], !options.quiet)
  const out = new FdSink(context.stdout.fd, '<stdout>')
  const rejects = options.rejects === undefined ? undefined : new RemovedFile(options.rejects)
  const checks = await lineChecks(options)
  const validator = new Validator(context, options, checks, out, rejects)
  let worst: number
  try {
    worst = await forEachInput(
      context,
      operands,
      {
        blockSize: options.readSize,
        headComplete: kindIsClear,
        outputs: [options.rejects, options.stats],
        blocksOf: (input) => blocksFor(input, options.readSize),
      },
      async (input, blocks) => {
        try {
          await validator.file(input, blocks)
        } finally {
          if (!options.quiet) await out.flush()
        }
      },
    )
    worst = Math.max(worst, validator.verdict(worst))
  } finally {
    await rejects?.close()
    await writeStats(context, options.stats, validator.counts)
  }
  return worst
}
