import { fileKind } from '../../src/core/file-kind.ts'
import { Repairer } from '../../src/core/repair.ts'
import type { RepairCounts } from '../../src/core/repair-counts.ts'
import type { Removal } from '../../src/core/repair-target.ts'
import { ToolError } from '../../src/core/tool-error.ts'
import { lineBlocks } from '../../src/streams/line-blocks.ts'
import { MemoryReader } from './memory-reader.ts'

export interface Repaired {
  out: Buffer
  pieces: Removal[]
  /** Where kept bytes stood, start and end of each; the same order as in `out`. */
  kept: [number, number][]
  counts: RepairCounts
  exitCode: number
  /** The code of the refusal, where the file was refused. */
  refused: string | undefined
}

/** Repairs bytes in memory, read in pieces of `readSize`. */
export async function repairBytes(bytes: Uint8Array, readSize = 65536): Promise<Repaired> {
  const out: Buffer[] = []
  const pieces: Removal[] = []
  const kept: [number, number][] = []
  const repairer = new Repairer('f', {
    keep(from, start, end, offset) {
      out.push(Buffer.from(from.subarray(start, end)))
      kept.push([offset, offset + end - start])
    },
    addNewline: () => void out.push(Buffer.from('\n')),
    remove: (piece) => void pieces.push({ ...piece, bytes: Buffer.from(piece.bytes) }),
    mayRefuse: () => true,
  })
  let refused: string | undefined
  try {
    const options = {
      blockSize: readSize,
      headComplete: (head: Buffer, end: number) => fileKind(head, end) !== 'undecided',
    }
    for await (const block of lineBlocks(new MemoryReader(bytes), options)) {
      const kind = block.offset === 0 ? fileKind(block.bytes, block.end) : undefined
      if (kind !== undefined && kind !== 'undecided')
        throw new ToolError(kind, kind, { exitCode: 1 })
      repairer.block(block)
    }
    repairer.finish()
  } catch (error) {
    if (!(error instanceof ToolError)) throw error
    refused = error.code
  }
  const { counts, exitCode } = repairer
  return { out: Buffer.concat(out), pieces, kept, counts, exitCode, refused }
}
