/** The second thread of validate-jsonl and repair-truncated: looks over block after block. */
import { parentPort, workerData } from 'node:worker_threads'
import { lookOver } from '../core/clean-block.ts'
import { LineJudge, type LinePolicy } from '../core/line-judge.ts'

const judge = new LineJudge(workerData as LinePolicy)

parentPort?.on('message', ({ memory, end }: { memory: SharedArrayBuffer; end: number }) => {
  parentPort?.postMessage(lookOver(judge, Buffer.from(memory), end))
})
