import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import type { LookOrder } from '../core/block-look.ts'
import { kernelMemory } from '../core/kernel.ts'
import type { LineBlock } from '../streams/line-blocks.ts'
import type { BlockMessage, OrderMessage } from './look-worker.ts'

/** Memories that the thread has at a time; lines that are longer than a block bring new ones. */
const MOST_KNOWN = 12

/** A look that is under way, or done. */
export interface PendingLook<Result> {
  isDone: boolean
  result: Result | Promise<Result>
}

class OpenLook<Result> implements PendingLook<Result> {
  isDone = false
  resolve!: (result: Result) => void
  reject!: (error: Error) => void
  readonly result: Promise<Result>

  constructor() {
    this.result = new Promise<Result>((resolve, reject) => {
      this.reject = reject
      this.resolve = (result) => {
        this.isDone = true
        resolve(result)
      }
    })
    // Its error comes when its turn does.
    this.result.catch(() => {})
  }
}

/** The second thread, which looks over one block after the other. */
export class LookThread<Result> {
  /** One that has nothing to do: its code is compiled, which takes as long as 100 MB. */
  static #resting: LookThread<unknown> | undefined

  /** It has started, and can be given blocks. */
  isReady = false
  #worker: Worker
  /** This side of the channel between the threads. */
  #port: MessagePort
  #open: OpenLook<Result>[] = []
  /** Numbers for the memories of blocks, which are sent once: that takes as long as 50 kB. */
  #ids = new WeakMap<ArrayBufferLike, number>()
  #nextId = 0
  /** Those that the thread has, the oldest first. */
  #sent = new Set<number>()

  /** A thread for an order, started or resting so far. */
  static for<Result>(order: LookOrder): LookThread<Result> {
    const thread = (LookThread.#resting ?? new LookThread()) as LookThread<Result>
    LookThread.#resting = undefined
    thread.#worker.ref()
    thread.#port.ref()
    thread.#port.postMessage({ order } satisfies OrderMessage)
    return thread
  }

  constructor() {
    // This file is compiled to .js, or run as it is.
    const extension = import.meta.url.slice(import.meta.url.lastIndexOf('.'))
    const file = new URL(`./look-worker${extension}`, import.meta.url)
    const { port1, port2 } = new MessageChannel()
    this.#port = port1
    this.#worker = new Worker(file, { workerData: port2, transferList: [port2] })
    this.#port.on('message', (message: Result | 'ready') => this.#take(message))
    this.#worker.on('error', (error) => this.#failed(error))
  }

  /** Blocks that it has not yet looked over. */
  get given(): number {
    return this.#open.length
  }

  look({ bytes, end }: LineBlock): PendingLook<Result> {
    const look = new OpenLook<Result>()
    this.#open.push(look)
    this.#port.postMessage(this.#message(bytes, end))
    return look
  }

  /** Takes the looks that are done, of which nothing is heard before this thread has nothing to do. */
  collect(): void {
    for (;;) {
      const received = receiveMessageOnPort(this.#port) as { message: Result | 'ready' } | undefined
      if (received === undefined) return
      this.#take(received.message)
    }
  }

  /** Ends with an order; a thread that is still busy with it ends too. */
  async rest(): Promise<void> {
    if (!this.isReady || this.given > 0) {
      this.#port.close()
      await this.#worker.terminate()
      return
    }
    this.#worker.unref()
    this.#port.unref()
    LookThread.#resting = this as unknown as LookThread<unknown>
  }

  #take(message: Result | 'ready'): void {
    if (message === 'ready') this.isReady = true
    else this.#open.shift()!.resolve(message)
  }

  #failed(error: Error): void {
    this.isReady = false
    for (const look of this.#open.splice(0)) look.reject(error)
  }

  #message(bytes: Buffer, end: number): BlockMessage {
    const { buffer } = bytes
    const known = this.#ids.get(buffer)
    if (known !== undefined && this.#sent.has(known)) return { id: known, end }
    const id = this.#nextId++
    this.#ids.set(buffer, id)
    const [oldest] = this.#sent
    const forget = this.#sent.size < MOST_KNOWN ? undefined : oldest
    if (forget !== undefined) this.#sent.delete(forget)
    this.#sent.add(id)
    const memory = kernelMemory(bytes) ?? (buffer as unknown as SharedArrayBuffer)
    return { id, end, memory, forget }
  }
}
