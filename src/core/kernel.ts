/**
 * What is done to most bytes, sixteen at a time in WebAssembly: reading long JSON strings and hashing
 * long records, four times as fast as JavaScript by words. It sees only memory that was made for it,
 * so blocks have to lie there to gain by it.
 */

import { kernelCode } from './kernel-code.ts'

/** The part of WebAssembly used here; TypeScript has its types in the library of browsers alone. */
interface WasmMemory {
  readonly buffer: SharedArrayBuffer
}

interface Wasm {
  Memory: new (limits: { initial: number; maximum: number; shared: true }) => WasmMemory
  Module: new (bytes: Uint8Array) => object
  Instance: new (module: object, imports: { js: { memory: WasmMemory } }) => { exports: Kernel }
}

export interface Kernel {
  /**
   * Reads a string on from `at`, which stands inside it and behind no half escape.
   *
   * @returns the offset behind the closing quote; -1 where a control byte breaks the string; -2 - x
   *   where a backslash at x begins something else than a simple escape
   */
  stringEnd(at: number): number
  /** The hash of at least 32 bytes, as content-hash.ts defines it for long records. */
  hash(start: number, end: number): number
}

/** Memory that a kernel can read, in a form that another thread can be given. */
export type KernelMemory = object

const PAGE = 64 * 1024
/** Bytes read behind the end of a string at most. */
const READ_AHEAD = 16
/** Address space is reserved per memory; lines beyond this are too rare to matter. */
const LARGEST = 256 * 1024 * 1024

const wasm = (globalThis as { WebAssembly?: Wasm }).WebAssembly
const memories = new WeakMap<ArrayBufferLike, WasmMemory>()
const kernels = new WeakMap<ArrayBufferLike, Kernel>()
let compiled: object | undefined

/**
 * Shared memory in which strings are read fast.
 *
 * @returns undefined where there is none, as under a limit on the address space
 */
export function kernelBytes(size: number): Buffer | undefined {
  if (wasm === undefined || size > LARGEST) return undefined
  try {
    const pages = Math.ceil((size + READ_AHEAD) / PAGE)
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
  compiled ??= new Module(kernelCode())
  const { exports } = new Instance(compiled, { js: { memory: own } })
  memories.set(own.buffer, own)
  kernels.set(own.buffer, exports)
  return own.buffer
}

/** The kernel for these bytes, where they lie in memory made for it. */
export function kernelOf({ buffer, byteOffset }: Uint8Array): Kernel | undefined {
  return byteOffset === 0 ? kernels.get(buffer) : undefined
}
