import { JsonGrammar } from './json-grammar.ts'

const COMMA = 0x2c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** The buffer as far as it is filled. */
export interface Filled {
  bytes: Buffer
  end: number
  /** Nothing follows. */
  isAll: boolean
}

/** An object behind which something may follow. */
export interface Whole {
  end: number
  /** The offset of what follows, -1 for the end of the file. */
  follows: number
}

/** More bytes are needed. */
export const WAIT = Symbol('wait')

/** Reads the object at `at`; where it is broken, returns the offset of the first wrong byte. */
export function wholeObject(filled: Filled, at: number): Whole | number | typeof WAIT {
  const { bytes, end, isAll } = filled
  const grammar = new JsonGrammar()
  const stop = grammar.feed(bytes, at, end)
  if (!grammar.complete) return stop < 0 ? (isAll ? end : WAIT) : stop
  let behind = stop < 0 ? end : stop
  const follows = nextToken(filled, behind)
  if (follows === WAIT) return WAIT
  while (bytes[behind - 1] !== CLOSE_BRACE) behind--
  return { end: behind, follows }
}

/** Whether nothing but framing follows; undefined where more bytes are needed. */
export function isEndOfFile(filled: Filled, from: number): boolean | undefined {
  const next = nextToken(filled, from)
  return next === WAIT ? undefined : next < 0
}

/** The offset of the next byte that is no framing, -1 at the end of the file. */
export function nextToken({ bytes, end, isAll }: Filled, from: number): number | typeof WAIT {
  let at = from
  while (at < end && isFraming(bytes[at]!)) at++
  if (at < end) return at
  return isAll ? -1 : WAIT
}

export function mayFollow(bytes: Buffer, at: number): boolean {
  return at < 0 || bytes[at] === COMMA || bytes[at] === CLOSE_BRACKET || bytes[at] === OPEN_BRACE
}

/** White space, and the NULs that a crash or a cut download leaves between elements. */
export function isFraming(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09 || byte === 0
}

/** The end of the range without framing behind it. */
export function trimmedEnd(bytes: Buffer, start: number, end: number): number {
  let at = end
  while (at > start && isFraming(bytes[at - 1]!)) at--
  return at
}

/** Whether there are brackets alone that open something, which the element behind does not need. */
export function isOpening(bytes: Buffer, start: number, end: number): boolean {
  const opens = [OPEN_BRACE, OPEN_BRACKET]
  return bytes.subarray(start, end).every((byte) => opens.includes(byte) || isFraming(byte))
}

/** Whether a string or a container begins or ends between the offsets. */
export function hasStructure(bytes: Buffer, from: number, to: number): boolean {
  const marks = [0x22, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE]
  return marks.some((byte) => bytes.subarray(from, to).includes(byte))
}
