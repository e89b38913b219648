/** The second thread of the binaries that look over whole files: takes block after block. */
import { type MessagePort, workerData } from 'node:worker_threads'
import { type Look, type LookOrder, lookFor } from '../core/block-look.ts'
import { attach, type KernelMemory } from '../core/kernel.ts'

/** A block to look over, the bytes up to `end` of a memory. */
export interface BlockMessage {
  /** Names the memory, which comes again and again. */
  id: number
  end: number
  /** Comes with a new `id`, */
  memory?: KernelMemory | SharedArrayBuffer
  /** and so may another one that does not come again. */
  forget?: number | undefined
}

/** What to look for in the blocks that follow. */
export interface OrderMessage {
  order: LookOrder
}

const port = workerData as MessagePort
const known = new Map<number, Buffer>()
let look: Look<unknown>

port.on('message', (message: OrderMessage | BlockMessage) => {
  if ('order' in message) look = lookFor(message.order)
  else lookAt(message)
})

function lookAt({ id, end, memory, forget }: BlockMessage): void {
  if (forget !== undefined) known.delete(forget)
  if (memory !== undefined) {
    known.set(id, Buffer.from(memory instanceof SharedArrayBuffer ? memory : attach(memory)))
  }
  const bytes = known.get(id)!
  const result = look(bytes, end)
  const moved = ArrayBuffer.isView(result) ? [result.buffer as ArrayBuffer] : []
  port.postMessage(result, moved)
}

port.postMessage('ready')
