/** The second thread of the binaries that look over whole files: takes block after block. */
import { parentPort, workerData } from 'node:worker_threads'
import { type LookOrder, lookFor } from '../core/block-look.ts'

const look = lookFor(workerData as LookOrder)

parentPort?.on('message', ({ memory, end }: { memory: SharedArrayBuffer; end: number }) => {
  const result = look(Buffer.from(memory), end)
  const moved = ArrayBuffer.isView(result) ? [result.buffer as ArrayBuffer] : []
  parentPort?.postMessage(result, moved)
})
