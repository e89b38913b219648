/** The WebAssembly of kernel.ts, its instructions named as in the text form. */

import {
  ADD,
  branch,
  codeSection,
  constant,
  END,
  FUNCTION,
  get,
  I32,
  IF,
  LOOP,
  LT_U,
  MAGIC_AND_VERSION,
  name,
  SUB,
  section,
  set,
  tee,
  unsigned,
  V128,
} from './wasm-code.ts'

/** The odd number of the golden ratio: its products spread to all higher bits. */
export const HASH_FACTOR = 0x9e3779b1 | 0

const AT = 0
/** What stops in the sixteen bytes, a bit each; then a byte. */
const WORD = 1
const CHUNK = 2

const END_AT = 1
const LENGTH = 2
const LOW = 3
const HIGH = 4
const LOW_SUM = 5
const HIGH_SUM = 6

/** Imported, shared, with at least one page. */
const SHARED_MEMORY = [2, 3, 1]
const MOST_PAGES = 65_536
/** One of 32 bits, one of 128. */
const STRING_LOCALS = [2, 1, I32, 1, V128]
/** One of 32 bits, four of 128. */
const HASH_LOCALS = [2, 1, I32, 4, V128]

const IF_I32 = [0x04, I32]
const ELSE = [0x05]
const RETURN = [0x0f]
const EQZ = [0x45]
const EQ = [0x46]
const NE = [0x47]
const CTZ = [0x68]
const AND = [0x71]
const OR = [0x72]
const SHR_U = [0x76]
const XOR = [0x73]
const LE_U = [0x4d]
const MUL = [0x6c]
const LOAD_CHUNK = loadChunk(0)
const CHUNK_EQ = [0xfd, 0x23]
const CHUNK_LT_U = [0xfd, 0x26]
const CHUNK_OR = [0xfd, 0x50]
const CHUNK_BITS = [0xfd, 0x64]
const LANES_SPLAT = [0xfd, 0x11]
const LANES_ADD = [0xfd, 0xae, 0x01]
/** A shuffle: byte 3 comes first, and behind byte 15 come the first three. */
const TURN = [0xfd, 0x0d, ...Array.from({ length: 16 }, (_, byte) => (byte + 3) % 16)]

const loadByte = (offset: number): number[] => [0x2d, 0, offset]
const splat = (byte: number): number[] => [0xfd, 0x0c, ...Array<number>(16).fill(byte)]

/** `b`, `f`, `n`, `r` and `t` as bits, counted from `b`. */
const ESCAPE_LETTERS = 0b1010001000000010001
const LETTER_B = 0x62

/**
 * The module: `(import "js" "memory")`, `(func (export "stringEnd") (param i32) (result i32))` and
 * `(func (export "hash") (param i32 i32) (result i32))`.
 */
export function kernelCode(): Uint8Array {
  return Uint8Array.from([
    ...MAGIC_AND_VERSION,
    ...section(1, [2, ...FUNCTION, 1, I32, 1, I32, ...FUNCTION, 2, I32, I32, 1, I32]),
    ...section(2, [1, ...name('js'), ...name('memory'), ...SHARED_MEMORY, ...unsigned(MOST_PAGES)]),
    ...section(3, [2, 0, 1]),
    ...section(7, [2, ...name('stringEnd'), 0, 0, ...name('hash'), 0, 1]),
    ...codeSection([stringEnd(), hash()]),
  ])
}

function stringEnd(): number[] {
  return [
    STRING_LOCALS,
    LOOP,
    // What ends a run of plain content in the next sixteen bytes?
    [...get(AT), ...LOAD_CHUNK, ...tee(CHUNK), ...splat(0x22), ...CHUNK_EQ],
    [...get(CHUNK), ...splat(0x5c), ...CHUNK_EQ, ...CHUNK_OR],
    [...get(CHUNK), ...splat(0x20), ...CHUNK_LT_U, ...CHUNK_OR],
    [...CHUNK_BITS, ...tee(WORD), ...EQZ],
    [...IF, ...get(AT), ...constant(16), ...ADD, ...set(AT), ...branch(1), ...END],
    [...get(AT), ...get(WORD), ...CTZ, ...ADD, ...tee(AT), ...loadByte(0), ...tee(WORD)],
    // A quote: behind it the string is at its end.
    [...constant(0x22), ...EQ, ...IF, ...get(AT), ...constant(1), ...ADD, ...RETURN, ...END],
    // No backslash: a control byte.
    [...get(WORD), ...constant(0x5c), ...NE, ...IF, ...constant(-1), ...RETURN, ...END],
    // A backslash: on behind its letter, if that is one of the simple ones.
    [...get(AT), ...loadByte(1), ...tee(WORD), ...constant(LETTER_B), ...SUB],
    [...constant(19), ...LT_U, ...IF_I32],
    [...constant(ESCAPE_LETTERS), ...get(WORD), ...constant(LETTER_B), ...SUB, ...SHR_U],
    [...constant(1), ...AND, ...ELSE],
    [...get(WORD), ...constant(0x22), ...EQ, ...get(WORD), ...constant(0x5c), ...EQ, ...OR],
    [...get(WORD), ...constant(0x2f), ...EQ, ...OR, ...END],
    [...IF, ...get(AT), ...constant(2), ...ADD, ...set(AT), ...branch(1), ...END],
    END,
    [...constant(-2), ...get(AT), ...SUB],
    END,
  ].flat()
}

/** contentHash of content-hash.ts over a long range. */
function hash(): number[] {
  return [
    HASH_LOCALS,
    [...get(END_AT), ...get(AT), ...SUB, ...tee(LENGTH), ...LANES_SPLAT, ...set(LOW)],
    [...get(LENGTH), ...constant(-1), ...XOR, ...LANES_SPLAT, ...set(HIGH)],
    [...get(END_AT), ...constant(32), ...SUB, ...set(END_AT)],
    LOOP,
    addUp(LOW, LOW_SUM, AT, 0),
    addUp(HIGH, HIGH_SUM, AT, 16),
    [...get(AT), ...constant(32), ...ADD, ...tee(AT), ...get(END_AT), ...LE_U],
    [...IF, ...branch(1), ...END],
    END,
    // What is left lies in the last 32 bytes.
    addUp(LOW, LOW_SUM, END_AT, 0),
    addUp(HIGH, HIGH_SUM, END_AT, 16),
    constant(0),
    ...[LOW, HIGH, LOW_SUM, HIGH_SUM].flatMap((chunk) =>
      [0, 1, 2, 3].map((lane) => foldIn(chunk, lane)),
    ),
    END,
  ].flat()
}

/** `chunk += the sixteen bytes`, `sum = (sum + chunk)` in each lane, turned by three bytes. */
function addUp(chunk: number, sum: number, at: number, offset: number): number[] {
  return [
    [...get(chunk), ...get(at), ...loadChunk(offset), ...LANES_ADD, ...tee(chunk)],
    [...get(sum), ...LANES_ADD, ...tee(sum), ...get(sum), ...TURN, ...set(sum)],
  ].flat()
}

/** The hash on the stack becomes `mix(hash ^ lane)`. */
function foldIn(chunk: number, lane: number): number[] {
  return [
    [...get(chunk), 0xfd, 0x1b, lane, ...XOR, ...constant(HASH_FACTOR), ...MUL, ...tee(LENGTH)],
    [...get(LENGTH), ...constant(15), ...SHR_U, ...XOR],
  ].flat()
}

function loadChunk(offset: number): number[] {
  return [0xfd, 0x00, 0, offset]
}
