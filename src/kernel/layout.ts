/**
 * Where the kernel keeps what it knows of a value and of lines: in the last {@link SCRATCH} bytes of
 * the memory that it reads, behind the bytes themselves.
 */

/** Bytes that must be left for the kernel at the end of a memory. */
export const SCRATCH: i32 = 80 * 1024

/** Of the value read last: its members, whether it is suspect, its depth, its long strings. */
export const HEADER: i32 = 0
/** Where long strings begin and end, 32 of them at most. */
export const LONG_STRINGS: i32 = 64
export const MOST_LONG_STRINGS: i32 = 32
/** Per name that is looked for, the member that has it. */
export const PLACES: i32 = 320
/** As in json-scan.ts: where key and value of each top-level member begin and end. */
export const MEMBERS: i32 = 512
export const MOST_MEMBERS: i32 = 256
/** The names that are looked for, 24 at most: sixteen bytes each, zeros behind them. */
export const NAMES: i32 = 4608
/** Per open container: the byte that closes it; for objects, where their keys begin, and which. */
export const CLOSERS: i32 = 5120
export const KEY_BASES: i32 = 5376
export const KEY_BLOOMS: i32 = 6400
export const DEEPEST: i32 = 255
/** A hash of each key of the open objects. */
export const KEY_HASHES: i32 = 7424
export const MOST_KEYS: i32 = 4096
/** Per top-level member, the last object in an array that it is; before them, that of other values. */
export const LAST_OBJECTS: i32 = 23_824
/** What rows.ts gives. */
export const ROWS: i32 = 25 * 1024
export const MOST_ROWS: i32 = 2048

/** Where all of that begins. */
export let scratch: i32 = 0

/** Tells where the memory ends. */
export function begin(memoryEnd: i32): void {
  scratch = memoryEnd - SCRATCH
}
