import { availableParallelism } from 'node:os'
import { type Look, type LookOrder, type LookResults, lookFor } from '../core/block-look.ts'
import type { Input } from '../files/input.ts'
import type { BlockOptions, LineBlock } from '../streams/line-blocks.ts'
import { isWorthAKernel } from './block-memory.ts'
import { LookThread, type PendingLook } from './look-thread.ts'

/** Below this a thread costs more than it saves: it takes some 60 ms to start. */
const WORTH_A_THREAD = 160 * 1024 * 1024

/** How blocks must be read to be passed on while the next ones are looked over. */
const PASSED_BLOCKS: BlockOptions = { kept: 2 }

/** Blocks that were read and not yet given: with the one being passed on and the next, those kept. */
const MOST_AHEAD = 4

/** How blocks must be read to be looked over by two threads, and passed on meanwhile. */
const SHARED_BLOCKS: BlockOptions = {
  blockSize: 1024 * 1024,
  kept: MOST_AHEAD + 2,
  shared: true,
}

/** Blocks that the second thread has at a time, so that it is busy while this one is. */
const MOST_GIVEN = 2

/**
 * How the blocks of an input must be read that may be looked over and passed on meanwhile.
 *
 * @param readSize what a person has set, which leaves no room for more
 */
export function blocksFor(
  input: Pick<Input, 'stats' | 'compression'>,
  readSize?: number,
): BlockOptions {
  if (readSize !== undefined) return PASSED_BLOCKS
  if (isWorthAThread(input)) return SHARED_BLOCKS
  return { ...PASSED_BLOCKS, shared: isWorthAKernel(input) }
}

/** Whether an input is large enough, and a second core there, for a second thread to help. */
export function isWorthAThread({
  stats,
  compression,
}: Pick<Input, 'stats' | 'compression'>): boolean {
  const large = stats.isFile() && stats.size >= WORTH_A_THREAD
  return large && compression === undefined && availableParallelism() > 1
}

/** A block, and what a look over it told. */
export interface LookedBlock<Result> {
  block: LineBlock
  result: Result
}

/**
 * Gives blocks in their order, each with what a look over it told. A second thread looks over as many
 * of them as it can, and this one over the others.
 *
 * @param blocks read as {@link blocksFor} says
 */
export async function* lookedOver<Kind extends LookOrder['kind']>(
  blocks: AsyncIterable<LineBlock>,
  order: LookOrder & { kind: Kind },
): AsyncGenerator<LookedBlock<LookResults[Kind]>, void, void> {
  type Result = LookResults[Kind]
  const thread = LookThread.for<Result>(order)
  const look = lookFor(order) as Look<Result>
  const ahead: { block: LineBlock; look: PendingLook<Result> }[] = []
  let failure: { error: unknown } | undefined
  try {
    for await (const block of noting(blocks, (error) => (failure = { error }))) {
      thread.collect()
      const isGiven = thread.isReady && thread.given < MOST_GIVEN
      ahead.push({ block, look: isGiven ? thread.look(block) : done(look(block.bytes, block.end)) })
      while (ahead.length === MOST_AHEAD || ahead[0]?.look.isDone) {
        const next = ahead.shift()!
        yield { block: next.block, result: await next.look.result }
      }
    }
    for (const next of ahead) yield { block: next.block, result: await next.look.result }
    if (failure !== undefined) throw failure.error
  } finally {
    await thread.rest()
  }
}

/** Ends where the blocks end by an error, so that what was read before is given first. */
async function* noting(
  blocks: AsyncIterable<LineBlock>,
  note: (error: unknown) => void,
): AsyncGenerator<LineBlock, void, void> {
  try {
    yield* blocks
  } catch (error) {
    note(error)
  }
}

function done<Result>(result: Result): PendingLook<Result> {
  return { isDone: true, result }
}

/** The same in this thread alone, for inputs that are not worth another. */
export async function* lookedOverHere<Kind extends LookOrder['kind']>(
  blocks: AsyncIterable<LineBlock>,
  order: LookOrder & { kind: Kind },
): AsyncGenerator<LookedBlock<LookResults[Kind]>, void, void> {
  const look = lookFor(order) as Look<LookResults[Kind]>
  for await (const block of blocks) yield { block, result: look(block.bytes, block.end) }
}

/** The same form without a look, for callers that go through the lines of such inputs themselves. */
export async function* notLookedOver(
  blocks: AsyncIterable<LineBlock>,
): AsyncGenerator<LookedBlock<undefined>, void, void> {
  for await (const block of blocks) yield { block, result: undefined }
}
