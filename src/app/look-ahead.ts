import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type Look, type LookOrder, type LookResults, lookFor } from '../core/block-look.ts'
import { kernelMemory } from '../core/string-kernel.ts'
import type { Input } from '../files/input.ts'
import type { BlockOptions, LineBlock } from '../streams/line-blocks.ts'

import type { BlockMessage } from './look-worker.ts'

/** Below this a thread costs more than it saves: it takes some 30 ms to start. */
const WORTH_A_THREAD = 256 * 1024 * 1024

/** How blocks must be read to be passed on while the next ones are looked over. */
export const PASSED_BLOCKS: BlockOptions = { kept: 2 }

/** How blocks must be read to be looked over by two threads, and passed on meanwhile. */
export const SHARED_BLOCKS: BlockOptions = { blockSize: 1024 * 1024, kept: 4, shared: true }

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
 * Gives blocks in their order, each with what a look over it told; every other block is looked over
 * by a second thread at the same time.
 *
 * @param blocks read as {@link SHARED_BLOCKS}
 */
export async function* lookedOver<Kind extends LookOrder['kind']>(
  blocks: AsyncIterable<LineBlock>,
  order: LookOrder & { kind: Kind },
): AsyncGenerator<LookedBlock<LookResults[Kind]>, void, void> {
  const thread = new LookThread<LookResults[Kind]>(order)
  const look = lookFor(order) as Look<LookResults[Kind]>
  let ahead: { block: LineBlock; result: Promise<LookResults[Kind]> } | undefined
  try {
    for await (const block of blocks) {
      if (ahead === undefined) {
        ahead = { block, result: thread.look(block) }
        continue
      }
      const result = look(block.bytes, block.end)
      yield { block: ahead.block, result: await ahead.result }
      ahead = undefined
      yield { block, result }
    }
    if (ahead !== undefined) yield { block: ahead.block, result: await ahead.result }
  } finally {
    await thread.end()
  }
}

/** The same form without a look, for callers that go through the lines of such inputs themselves. */
export async function* notLookedOver(
  blocks: AsyncIterable<LineBlock>,
): AsyncGenerator<LookedBlock<undefined>, void, void> {
  for await (const block of blocks) yield { block, result: undefined }
}

/** The second thread; it has one block at a time. */
class LookThread<Result> {
  #worker: Worker
  /** Numbers for the memories of blocks, so that the thread knows one again. */
  #ids = new WeakMap<ArrayBufferLike, number>()
  #nextId = 0

  constructor(order: LookOrder) {
    // This file is compiled to .js, or run as it is.
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const file = new URL(`./look-worker${extension}`, import.meta.url)
    this.#worker = new Worker(file, { workerData: order })
  }

  look({ bytes, end }: LineBlock): Promise<Result> {
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        this.#worker.off('message', done)
        this.#worker.off('error', failed)
      }
      const done = (result: Result): void => {
        settled()
        resolve(result)
      }
      const failed = (error: Error): void => {
        settled()
        reject(error)
      }
      this.#worker.on('message', done)
      this.#worker.on('error', failed)
      this.#worker.postMessage(this.#message(bytes, end))
    })
  }

  #message(bytes: Buffer, end: number): BlockMessage {
    const { buffer } = bytes
    let id = this.#ids.get(buffer)
    if (id === undefined) {
      id = this.#nextId++
      this.#ids.set(buffer, id)
    }
    return { id, memory: kernelMemory(bytes) ?? (buffer as unknown as SharedArrayBuffer), end }
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }
}
