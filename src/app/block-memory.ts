import type { Input } from '../files/input.ts'

/** Below this memory for the kernel costs more than it saves. */
const WORTH_A_KERNEL = 4 * 1024 * 1024

/** Whether an input is so large that its blocks should lie where the kernel reads them. */
export function isWorthAKernel({
  stats,
  compression,
}: Pick<Input, 'stats' | 'compression'>): boolean {
  return !stats.isFile() || compression !== undefined || stats.size >= WORTH_A_KERNEL
}
