/**
 * What is done to most bytes, sixteen at a time in WebAssembly: reading JSON and hashing records, some
 * times as fast as JavaScript, and from the first byte on, where JavaScript is compiled while it runs,
 * in each thread anew. It sees only memory that was made for it, so blocks have to lie there to gain by
 * it. Its source is src/kernel/.
 */

import { KERNEL_CODE, KERNEL_SCRATCH } from './kernel-code.ts'

/** The part of WebAssembly used here; TypeScript has its types in the library of browsers alone. */
interface WasmMemory {
  readonly buffer: SharedArrayBuffer
}

interface Wasm {
  Memory: new (limits: { initial: number; maximum: number; shared: true }) => WasmMemory
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: { env: { memory: WasmMemory } }) => { exports: Exports }
}

/** The functions of src/kernel/index.ts, and where its tables begin. */
export interface Exports {
  begin(memoryEnd: number): void
  stringEnd(at: number): number
  value(start: number, comparesKeys: boolean): number
  cleanLines(start: number, end: number, maxDepth: number, comparesKeys: boolean): number
  lineCount(): number
  keyRows(start: number, end: number, keys: number): number
  answerRows(start: number, end: number, keys: number): number
  rowsLeft(): number
  nextLine(): number
  judgeRows(count: number, capacity: number): number
  otherVerdicts(): number
  contentHash(start: number, end: number): number
  xxh64Stripes(sums: number, start: number, end: number): void
  SCRATCH: Constant
  HEADER: Constant
  LONG_STRINGS: Constant
  MEMBERS: Constant
  NAMES: Constant
  CLOSERS: Constant
  ROWS: Constant
}

interface Constant {
  readonly value: number
}

/** The kernel over one memory, for one thread. */
export interface Kernel {
  run: Exports
  /** What `run.value` tells: members, whether suspect, depth, long strings. */
  header: Int32Array
  longStrings: Int32Array
  members: Int32Array
  /** What `run.keyRows` and `run.answerRows` look for. */
  names: Buffer
  /** What they give, and `run.judgeRows` takes. */
  rows: Int32Array
}

/** Bytes of a name that the kernel looks for; shorter ones end in zeros. */
const NAME_LENGTH = 16

/** What `run.value` gives for a value that is too deep or too wide for its tables. */
export const LEFT_TO_JAVASCRIPT = -2

/** Nesting that the kernel can follow. */
export const KERNEL_DEPTH = 255

/** Memory that a kernel can read, in a form that another thread can be given. */
export type KernelMemory = object

const PAGE = 64 * 1024
/** Bytes read behind those that are asked for at most. */
const READ_AHEAD = 16
/** Address space is reserved per memory; lines beyond this are too rare to matter. */
const LARGEST = 256 * 1024 * 1024

const wasm = (globalThis as { WebAssembly?: Wasm }).WebAssembly
const memories = new WeakMap<ArrayBufferLike, WasmMemory>()
const kernels = new WeakMap<ArrayBufferLike, Kernel>()
let compiled: object | undefined

/**
 * Shared memory whose bytes the kernel reads.
 *
 * @returns undefined where there is none, as under a limit on the address space
 */
export function kernelBytes(size: number): Buffer | undefined {
  if (wasm === undefined || size > LARGEST) return undefined
  try {
    const pages = Math.ceil((size + READ_AHEAD + KERNEL_SCRATCH) / PAGE)
    const memory = new wasm.Memory({ initial: pages, maximum: pages, shared: true })
    attach(memory)
    return Buffer.from(memory.buffer, 0, size)
  } catch {
    return undefined
  }
}

/** Memory for bytes that are put together here, which the kernel can read where there is one. */
export function draftBytes(size: number): Buffer {
  return kernelBytes(size) ?? Buffer.allocUnsafeSlow(size)
}

/** The memory of bytes that {@link kernelBytes} gave, for another thread to {@link attach}. */
export function kernelMemory(bytes: Buffer): KernelMemory | undefined {
  return memories.get(bytes.buffer)
}

/**
 * Makes a memory known in this thread.
 *
 * @returns its bytes
 */
export function attach(memory: KernelMemory): SharedArrayBuffer {
  const own = memory as WasmMemory
  const { Module, Instance } = wasm!
  compiled ??= new Module(Buffer.from(KERNEL_CODE, 'base64'))
  const { exports: run } = new Instance(compiled, { env: { memory: own } })
  memories.set(own.buffer, own)
  kernels.set(own.buffer, kernelWith(run, own.buffer))
  return own.buffer
}

function kernelWith(run: Exports, buffer: SharedArrayBuffer): Kernel {
  const scratch = buffer.byteLength - KERNEL_SCRATCH
  run.begin(buffer.byteLength)
  const table = (at: Constant, end: Constant): Int32Array =>
    new Int32Array(buffer, scratch + at.value, (end.value - at.value) >> 2)
  return {
    run,
    header: table(run.HEADER, run.LONG_STRINGS),
    longStrings: table(run.LONG_STRINGS, run.MEMBERS),
    members: table(run.MEMBERS, run.NAMES),
    names: Buffer.from(buffer, scratch + run.NAMES.value, run.CLOSERS.value - run.NAMES.value),
    rows: table(run.ROWS, run.SCRATCH),
  }
}

/**
 * Names as the kernel takes them.
 *
 * @returns undefined where one of them is too long for it
 */
export function kernelNames(names: readonly Uint8Array[]): Buffer | undefined {
  if (names.some(({ length }) => length > NAME_LENGTH)) return undefined
  const bytes = Buffer.alloc(names.length * NAME_LENGTH)
  for (const [index, name] of names.entries()) bytes.set(name, index * NAME_LENGTH)
  return bytes
}

/** The kernel for these bytes, where they lie in memory made for it. */
export function kernelOf({ buffer, byteOffset }: Uint8Array): Kernel | undefined {
  return byteOffset === 0 ? kernels.get(buffer) : undefined
}
