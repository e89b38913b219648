import { availableParallelism } from 'node:os'
import { Worker } from 'node:worker_threads'
import { type BlockVerdict, lookOver } from '../core/clean-block.ts'
import { LineJudge, type LinePolicy } from '../core/line-judge.ts'
import type { Input } from '../files/input.ts'
import type { BlockOptions, LineBlock } from '../streams/line-blocks.ts'

/** Below this a thread costs more than it saves: it takes some 30 ms to start. */
const WORTH_A_THREAD = 256 * 1024 * 1024

/** How blocks must be read to be looked over by two threads. */
export const SHARED_BLOCKS: BlockOptions = { blockSize: 1024 * 1024, kept: 2, shared: true }

/** Whether an input is large enough, and a second core there, for a second thread to help. */
export function isWorthAThread({
  stats,
  compression,
}: Pick<Input, 'stats' | 'compression'>): boolean {
  const large = stats.isFile() && stats.size >= WORTH_A_THREAD
  return large && compression === undefined && availableParallelism() > 1
}

/** A block, and what a second thread or this one told of it where there are two. */
export interface LookedBlock {
  block: LineBlock
  verdict?: BlockVerdict
}

/**
 * Gives blocks in their order, each with what a look over it told; every other block is looked over
 * by a second thread at the same time.
 *
 * @param blocks read as {@link SHARED_BLOCKS}
 * @param policy what is clean; undefined for no second thread and no verdicts
 */
export async function* lookedOver(
  blocks: AsyncIterable<LineBlock>,
  policy: LinePolicy | undefined,
): AsyncGenerator<LookedBlock, void, void> {
  if (policy === undefined) {
    for await (const block of blocks) yield { block }
    return
  }
  const thread = new LookThread(policy)
  const judge = new LineJudge(policy)
  let ahead: { block: LineBlock; verdict: Promise<BlockVerdict> } | undefined
  try {
    for await (const block of blocks) {
      if (ahead === undefined) {
        ahead = { block, verdict: thread.look(block) }
        continue
      }
      const verdict = lookOver(judge, block.bytes, block.end)
      yield { block: ahead.block, verdict: await ahead.verdict }
      ahead = undefined
      yield { block, verdict }
    }
    if (ahead !== undefined) yield { block: ahead.block, verdict: await ahead.verdict }
  } finally {
    await thread.end()
  }
}

/** The second thread; it has one block at a time. */
class LookThread {
  #worker: Worker

  constructor(policy: LinePolicy) {
    // This file is compiled to .js, or run as it is.
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const file = new URL(`./look-worker${extension}`, import.meta.url)
    this.#worker = new Worker(file, { workerData: policy })
  }

  look({ bytes, end }: LineBlock): Promise<BlockVerdict> {
    return new Promise((resolve, reject) => {
      const settled = (): void => {
        this.#worker.off('message', done)
        this.#worker.off('error', failed)
      }
      const done = (verdict: BlockVerdict): void => {
        settled()
        resolve(verdict)
      }
      const failed = (error: Error): void => {
        settled()
        reject(error)
      }
      this.#worker.on('message', done)
      this.#worker.on('error', failed)
      this.#worker.postMessage({ memory: bytes.buffer, end })
    })
  }

  async end(): Promise<void> {
    await this.#worker.terminate()
  }
}
