import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { parseString } from './json-string.ts'

/** What an object looks like: its keys. */
export interface Look {
  first: string
  /** All keys, without their order. */
  set: string
}

/** Elements this near before damage are evidence of what an element of the array looks like. */
const NEAR = 8
/** Of a longer element only its own keys are kept, not what is nested in it. */
const LONGEST = 1024 * 1024
const LONGEST_TEXT = 256 * 1024 * 1024

interface Near {
  start: number
  end: number
  /** A copy, when the buffer no longer has the bytes. */
  copy: Buffer | undefined
  /** Looks of the element and of the objects in it, when they were asked for. */
  own: Look | undefined
  nested: Look[] | undefined
}

/** The last few whole elements of an array, and what objects of theirs look like. */
export class ElementLooks {
  #near: Near[] = []

  get isEmpty(): boolean {
    return this.#near.length === 0
  }

  /** Adds an element that the scanner has just read. */
  add(scanner: JsonScanner, bytes: Buffer, start: number, end: number): void {
    if (scanner.memberCount === 0) return
    const near: Near = { start, end, copy: undefined, own: undefined, nested: undefined }
    if (end - start > LONGEST) {
      near.own = lookOfKeys(memberKeys(scanner, bytes))
      near.nested = []
    }
    if (this.#near.length === NEAR) this.#near.shift()
    this.#near.push(near)
  }

  /** Keeps what is needed of a buffer that is about to be moved. */
  keep(bytes: Buffer): void {
    for (const near of this.#near) {
      if (near.own === undefined && near.copy === undefined) {
        near.copy = Buffer.from(bytes.subarray(near.start, near.end))
      }
    }
  }

  /** Whether an element near has the same keys, in any order. */
  hasSame(look: Look, bytes: Buffer): boolean {
    return this.#near.some((near) => own(near, bytes).set === look.set)
  }

  /** Whether it may be an element: one near has the same keys, or the same first one. */
  mayBeElement(look: Look, bytes: Buffer): boolean {
    return this.#near.some((near) => isLike(own(near, bytes), look))
  }

  /** Whether it may be nested in an element: one near has an object inside that looks like it. */
  mayBeNested(look: Look, bytes: Buffer): boolean {
    const isSame = this.hasSame(look, bytes)
    return this.#near.some((near) => {
      own(near, bytes)
      return near.nested!.some((inner) => (isSame ? inner.set === look.set : isLike(inner, look)))
    })
  }
}

/**
 * What the object of these bytes, which are JSON, looks like; undefined where it has no key, or is
 * longer than any text can be.
 */
export function lookOf(bytes: Buffer, start: number, end: number): Look | undefined {
  if (end - start > LONGEST_TEXT) return undefined
  const keys = Object.keys(JSON.parse(bytes.toString('utf8', start, end)) as object)
  return keys.length === 0 ? undefined : lookOfKeys(keys)
}

function own(near: Near, bytes: Buffer): Look {
  if (near.own !== undefined) return near.own
  const text = near.copy?.toString() ?? bytes.toString('utf8', near.start, near.end)
  const element = JSON.parse(text) as object
  near.own = lookOfKeys(Object.keys(element))
  near.nested = nestedLooks(element)
  near.copy = undefined
  return near.own
}

/** The looks of the objects inside a value, each once, whatever its depth. */
function nestedLooks(value: object): Look[] {
  const looks = new Map<string, Look>()
  const open: object[] = [value]
  for (let holder = open.pop(); holder !== undefined; holder = open.pop()) {
    for (const inner of Object.values(holder) as unknown[]) {
      if (typeof inner !== 'object' || inner === null) continue
      open.push(inner)
      const keys = Array.isArray(inner) ? [] : Object.keys(inner)
      if (keys.length === 0) continue
      const look = lookOfKeys(keys)
      looks.set(`${look.first}\n${look.set}`, look)
    }
  }
  return [...looks.values()]
}

function lookOfKeys(keys: readonly string[]): Look {
  return { first: keys[0]!, set: JSON.stringify([...keys].sort()) }
}

function isLike(one: Look, other: Look): boolean {
  return one.set === other.set || one.first === other.first
}

function memberKeys(scanner: JsonScanner, bytes: Buffer): string[] {
  const keys = new Set<string>()
  for (let index = 0; index < scanner.memberCount; index++) {
    const at = index * MEMBER_STRIDE
    keys.add(parseString(bytes, scanner.members[at]!, scanner.members[at + 1]!))
  }
  return [...keys]
}
