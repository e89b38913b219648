/** The second thread of the binaries that look over whole files: takes block after block. */
import { parentPort, workerData } from 'node:worker_threads'
import { type LookOrder, lookFor } from '../core/block-look.ts'
import { attach, type KernelMemory } from '../core/kernel.ts'

/** A block to look over; `id` names its memory, which comes again and again. */
export interface BlockMessage {
  id: number
  memory: KernelMemory | SharedArrayBuffer
  end: number
}

/** Memories known at a time; lines that are longer than a block bring new ones. */
const MOST_KNOWN = 12

const look = lookFor(workerData as LookOrder)
const known = new Map<number, Buffer>()

parentPort?.on('message', ({ id, memory, end }: BlockMessage) => {
  let bytes = known.get(id)
  if (bytes === undefined) {
    bytes = Buffer.from(memory instanceof SharedArrayBuffer ? memory : attach(memory))
    for (const oldest of known.keys()) if (known.size >= MOST_KNOWN) known.delete(oldest)
    known.set(id, bytes)
  }
  const result = look(bytes, end)
  const moved = ArrayBuffer.isView(result) ? [result.buffer as ArrayBuffer] : []
  parentPort?.postMessage(result, moved)
})

parentPort?.postMessage('ready')
