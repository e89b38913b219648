import { isUtf8 } from 'node:buffer'
import { type NearRecord, objectKeys } from './glue-near.ts'
import { JsonGrammar } from './json-grammar.ts'
import type { JsonScanner } from './json-scan.ts'
import { readTorn, type TornObject } from './repair-torn.ts'

/** A torn object with whole ones behind it; offsets in the buffer. */
export interface Glue {
  /** Where the torn part ends; NULs may follow it. */
  tornEnd: number
  /** Where the whole objects begin, in order; each ends where white space or the next one begins. */
  objects: number[]
}

/**
 * Finds where whole objects were written straight behind a torn one, and whether records near it
 * are evidence for that: the rules of INTERFACE.md, repair-truncated. Linear in the bytes.
 *
 * @param scanner used with `bytes`, which have a line feed behind the line's end
 * @param end behind the last byte of the line that is no white space
 */
export function findGlue(
  scanner: JsonScanner,
  bytes: Buffer,
  start: number,
  end: number,
  near: readonly NearRecord[],
): Glue | undefined {
  if (bytes[start] !== 0x7b || bytes[end - 1] !== 0x7d || near.length === 0) return undefined
  const offence = new JsonGrammar().feed(bytes, start, end)
  const soundEnd = offence < 0 ? end : offence
  /** The last object of the line comes first. */
  const objects: number[] = []
  let proven = 0
  let provenEnd = 0
  for (let stop = end; ; ) {
    const object = objectBefore(scanner, bytes, start + 1, stop)
    if (object < 0) break
    const keys = objectKeys(bytes, object)
    const alike = near.filter((record) => sameSet(record.keys, keys))
    if (alike.length === 0) break
    objects.push(object)
    const tornEnd = beforeNuls(bytes, start, object)
    if (tornEnd <= soundEnd) {
      const torn = readTorn(bytes, start, tornEnd)
      if (torn === undefined || !isBeginningOfOne(torn, alike) || mayBeNested(torn, near)) break
      proven = objects.length
      provenEnd = tornEnd
    }
    stop = beforeFraming(bytes, start, object)
  }
  if (proven === 0) return undefined
  return { tornEnd: provenEnd, objects: objects.slice(0, proven).reverse() }
}

/** Whether the torn part's keys are, as far as they go, the first of a near record's. */
function isBeginningOfOne(torn: TornObject, alike: readonly NearRecord[]): boolean {
  const { keys, cutKey } = torn
  if (keys.length === 0) return false
  return alike.some(
    (record) =>
      keys.every((key, index) => key === record.keys[index]) &&
      (cutKey === undefined || record.keys[keys.length]?.startsWith(cutKey) === true),
  )
}

/**
 * Whether the object behind the tear could be a value of the torn one: a near record has an object
 * or null there, or none has anything there, as where all arrays of a tree's leaves are empty.
 */
function mayBeNested({ valuePath }: TornObject, near: readonly NearRecord[]): boolean {
  if (valuePath === undefined) return false
  const looks = near.map((record) => record.lookAt(valuePath))
  return looks.includes('object') || !looks.includes('other')
}

function sameSet(a: readonly string[], b: readonly string[]): boolean {
  if (a.length === b.length && a.every((key, index) => key === b[index])) return a.length > 0
  const keys = new Set(a)
  const others = new Set(b)
  return keys.size > 0 && keys.size === others.size && b.every((key) => keys.has(key))
}

/**
 * Where the whole object begins that ends at `end`, not before `floor`; -1 where there is none. At
 * most one brace can be its beginning: it is found by matching braces backwards over strings and
 * confirmed forwards.
 */
function objectBefore(scanner: JsonScanner, bytes: Buffer, floor: number, end: number): number {
  if (bytes[end - 1] !== 0x7d) return -1
  let depth = 0
  for (let at = end - 1; at >= floor; at--) {
    const byte = bytes[at]
    if (byte === 0x22) {
      at = openingQuote(bytes, at, floor)
      if (at < 0) return -1
    } else if (byte === 0x7d) {
      depth++
    } else if (byte === 0x7b && --depth === 0) {
      const whole = scanner.value(at) === end && isUtf8(bytes.subarray(at, end))
      return whole ? at : -1
    }
  }
  return -1
}

/** The quote that opens the string which `close` closes: the one before it that is not escaped. */
function openingQuote(bytes: Buffer, close: number, floor: number): number {
  let at = close
  for (;;) {
    at = at > floor ? bytes.lastIndexOf(0x22, at - 1) : -1
    if (at < floor) return -1
    let backslash = at
    while (backslash > floor && bytes[backslash - 1] === 0x5c) backslash--
    if (((at - backslash) & 1) === 0) return at
  }
}

/** The end of what stands before a run of NULs; white space among them belongs to the run. */
export function beforeNuls(bytes: Buffer, floor: number, end: number): number {
  const stop = beforeFraming(bytes, floor, end)
  const nul = bytes.subarray(stop, end).indexOf(0)
  return nul < 0 ? end : stop + nul
}

/** The end of what stands before a run of NULs and white space. */
export function beforeFraming(bytes: Buffer, floor: number, end: number): number {
  let at = end
  while (at > floor && (bytes[at - 1] === 0 || isBlank(bytes[at - 1]!))) at--
  return at
}

function isBlank(byte: number): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d
}
