/** The WebAssembly of xxh64.ts, its instructions named as in the text form. */

import {
  ADD,
  branch,
  codeSection,
  constant,
  END,
  FUNCTION,
  get,
  I32,
  I64,
  IF,
  LOOP,
  LT_U,
  MAGIC_AND_VERSION,
  name,
  section,
  set,
  tee,
} from './wasm-code.ts'

/** PRIME64_1 and PRIME64_2 of the specification. */
export const PRIME_1 = 0x9e3779b185ebca87n
export const PRIME_2 = 0xc2b2ae3d27d4eb4fn

/** Bytes that are hashed at once: eight for each of the four sums. */
export const STRIPE = 32

const AT = 0
const END_AT = 1
const SUMS = [2, 3, 4, 5]
/** Four of 64 bits. */
const LOCALS = [1, 4, I64]

const MUL_64 = [0x7e]
const ADD_64 = [0x7c]
const ROTL_64 = [0x89]

const constant64 = (value: bigint): number[] => [0x42, ...signed64(BigInt.asIntN(64, value))]
/** The alignment is 2^3 bytes. */
const load64 = (offset: number): number[] => [0x29, 3, offset]
const store64 = (offset: number): number[] => [0x37, 3, offset]

/**
 * The module: `(memory (export "memory") PAGES)` and `(func (export "stripes") (param i32 i32))`, which
 * hashes the stripes of a range into the four sums that lie at the begin of the memory.
 *
 * @param pages less than 64
 */
export function xxh64Code(pages: number): Uint8Array {
  return Uint8Array.from([
    ...MAGIC_AND_VERSION,
    ...section(1, [1, ...FUNCTION, 2, I32, I32, 0]),
    ...section(3, [1, 0]),
    // One memory, which has a most: as many pages as it begins with.
    ...section(5, [1, 1, pages, pages]),
    ...section(7, [2, ...name('memory'), 2, 0, ...name('stripes'), 0, 0]),
    ...codeSection([stripes()]),
  ])
}

function stripes(): number[] {
  return [
    LOCALS,
    ...SUMS.map((sum, lane) => [...constant(0), ...load64(lane * 8), ...set(sum)]),
    LOOP,
    ...SUMS.map(round),
    [...get(AT), ...constant(STRIPE), ...ADD, ...tee(AT), ...get(END_AT), ...LT_U],
    [...IF, ...branch(1), ...END],
    END,
    ...SUMS.map((sum, lane) => [...constant(0), ...get(sum), ...store64(lane * 8)]),
    END,
  ].flat()
}

/** `sum = rotl(sum + word * PRIME_2, 31) * PRIME_1`. */
function round(sum: number, lane: number): number[] {
  return [
    [...get(sum), ...get(AT), ...load64(lane * 8), ...constant64(PRIME_2), ...MUL_64, ...ADD_64],
    [...constant64(31n), ...ROTL_64, ...constant64(PRIME_1), ...MUL_64, ...set(sum)],
  ].flat()
}

/** A number in signed LEB128. */
function signed64(value: bigint): number[] {
  const byte = Number(value & 0x7fn)
  const rest = value >> 7n
  const isLast = rest === (byte & 0x40 ? -1n : 0n)
  return isLast ? [byte] : [byte | 0x80, ...signed64(rest)]
}
