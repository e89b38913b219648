import { JsonScanner, MEMBER_STRIDE, PADDING } from './json-scan.ts'
import { parseString } from './json-string.ts'
import type { Step } from './repair-torn.ts'

/** Records this near to damage are evidence of what a record of the file looks like. */
const NEAR = 8

/** A longer record is no evidence: eight copies of them must fit in memory. */
const LONGEST = 16 * 1024 * 1024

const OPEN_BRACE = 0x7b
const OPEN_BRACKET = 0x5b

const scanner = new JsonScanner()

/** What stands at a place of a record: an object or null, only other values, or nothing. */
export type PlaceLook = 'object' | 'other' | 'none'

/** A valid record of the file; its keys are computed when they are asked for. */
export class NearRecord {
  /** The record, with what the scanner needs behind it; undefined for one that is too long. */
  #bytes: Buffer | undefined
  #keys: string[] | undefined

  /** @param bytes undefined for a record that is too long */
  constructor(bytes: Buffer | undefined) {
    this.#bytes = bytes
  }

  static copyOf(bytes: Buffer, start: number, end: number): NearRecord {
    return new NearRecord(end - start > LONGEST ? undefined : copyOf(bytes, start, end))
  }

  /** Its top-level keys in order; none where it is no object, or too long. */
  get keys(): readonly string[] {
    this.#keys ??= this.#bytes === undefined ? [] : objectKeys(this.#bytes, 0)
    return this.#keys
  }

  /** What it has at a place; a record that is too long may have an object anywhere. */
  lookAt(path: readonly Step[]): PlaceLook {
    return this.#bytes === undefined ? 'object' : lookAt(this.#bytes, path)
  }
}

/** The last few valid records. */
export class NearRecords {
  #records: NearRecord[] = []
  /** A run that gives all of them and is not copied: where its lines start, the last first, and its end. */
  #run: { bytes: Buffer; starts: readonly number[]; end: number } | undefined

  /** The oldest first. */
  get list(): readonly NearRecord[] {
    this.settle()
    return this.#records
  }

  add(bytes: Buffer, start: number, end: number): void {
    this.settle()
    this.#push(NearRecord.copyOf(bytes, start, end))
  }

  /**
   * Copies what has not been. To be called before the block after the next one is given, when the
   * memory of the last run is used anew.
   */
  settle(): void {
    if (this.#run === undefined) return
    const { bytes, starts, end } = this.#run
    this.#run = undefined
    this.#addLines(bytes, starts, end)
  }

  /** Adds the last of some records, start and end of each in turn. */
  addRanges(bytes: Buffer, ranges: readonly number[]): void {
    for (let at = Math.max(0, ranges.length - 2 * NEAR); at < ranges.length; at += 2) {
      this.add(bytes, ranges[at]!, ranges[at + 1]!)
    }
  }

  /**
   * Adds the last of a run of lines that are a record each.
   *
   * @param bytes stay as they are while the next block is gone through
   */
  addRun(bytes: Buffer, start: number, end: number): void {
    const starts: number[] = []
    for (let stop = end; stop > start && starts.length < NEAR; ) {
      const lineFeed = stop - start < 2 ? -1 : bytes.lastIndexOf(0x0a, stop - 2)
      stop = Math.max(start, lineFeed + 1)
      starts.push(stop)
    }
    // There is one at every block, and hardly ever is it asked for.
    if (starts.length === NEAR) this.#run = { bytes, starts, end }
    else this.#addLines(bytes, starts, end)
  }

  #addLines(bytes: Buffer, starts: readonly number[], end: number): void {
    for (let i = starts.length - 1; i >= 0; i--) this.add(bytes, starts[i]!, starts[i - 1] ?? end)
  }

  #push(record: NearRecord): void {
    if (this.#records.length === NEAR) this.#records.shift()
    this.#records.push(record)
  }
}

/** A copy with a line feed and the scanner's padding behind it. */
function copyOf(bytes: Buffer, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafe(end - start + PADDING)
  bytes.copy(copy, 0, start, end)
  copy[end - start] = 0x0a
  return copy
}

/** The top-level keys of the object at `start`, decoded; none where another value stands there. */
export function objectKeys(bytes: Buffer, start: number): string[] {
  scanner.use(bytes)
  scanner.value(start)
  const keys: string[] = []
  for (let index = 0; index < scanner.memberCount; index++) {
    const at = index * MEMBER_STRIDE
    keys.push(parseString(bytes, scanner.members[at]!, scanner.members[at + 1]!))
  }
  return keys
}

/**
 * What stands at the end of `path`, in all elements of the arrays on the way: one object decides.
 * One pass without recursion, whatever the depth: what is off the path is skipped.
 */
function lookAt(bytes: Buffer, path: readonly Step[]): PlaceLook {
  scanner.use(bytes)
  let depth = 0
  let look: PlaceLook = 'none'
  let at = skipBlank(bytes, 0)
  for (;;) {
    const byte = bytes[at]!
    if (depth === path.length) {
      if (byte === OPEN_BRACE || byte === 0x6e) return 'object'
      look = 'other'
    }
    const opens = path[depth] === null ? OPEN_BRACKET : OPEN_BRACE
    if (depth < path.length && byte === opens) {
      depth++
      at++
    } else {
      at = scanner.value(at)
    }
    // Goes on to the next value that lies on the path.
    for (;;) {
      if (depth === 0) return look
      at = skipBlank(bytes, at)
      if (bytes[at] === 0x2c) {
        at++
      } else if (bytes[at] === 0x7d || bytes[at] === 0x5d) {
        depth--
        at++
      } else if (path[depth - 1] === null) {
        break
      } else {
        const keyEnd = scanner.value(at)
        const onPath = parseString(bytes, at, keyEnd) === path[depth - 1]
        at = skipBlank(bytes, skipBlank(bytes, keyEnd) + 1)
        if (onPath) break
        at = scanner.value(at)
      }
    }
  }
}

function skipBlank(bytes: Buffer, start: number): number {
  let at = start
  while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0d) at++
  return at
}
