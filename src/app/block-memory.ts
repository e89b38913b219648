import type { Input } from '../files/input.ts'
import type { BlockOptions } from '../streams/line-blocks.ts'

/** Below this memory for the kernel costs more than it saves. */
const WORTH_A_KERNEL = 512 * 1024

/** Reads of a large input: fewer turns of the loop than with smaller ones. */
const LARGE_BLOCK = 1024 * 1024

/** Whether an input is so large that its blocks should lie where the kernel reads them. */
export function isWorthAKernel({
  stats,
  compression,
}: Pick<Input, 'stats' | 'compression'>): boolean {
  return !stats.isFile() || compression !== undefined || stats.size >= WORTH_A_KERNEL
}

/**
 * How the blocks of an input are best read by one thread.
 *
 * @param readSize what a person has set
 */
export function blocksForOne(
  input: Pick<Input, 'stats' | 'compression'>,
  readSize: number | undefined,
): BlockOptions {
  const shared = isWorthAKernel(input)
  return { blockSize: readSize ?? (shared ? LARGE_BLOCK : undefined), shared }
}
