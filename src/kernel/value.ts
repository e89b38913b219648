import { behindBlanks, byteAt, isDigit, QUOTE } from './bytes'
import {
  CLOSERS,
  DEEPEST,
  HEADER,
  LAST_OBJECTS,
  LONG_STRINGS,
  MEMBERS,
  MOST_LONG_STRINGS,
  MOST_MEMBERS,
  scratch,
} from './layout'
import { numberEnd } from './number'
import { beginValue, closeObject, mayRepeat, openObject, readKey } from './object-keys'
import { forgetSurrogates, hasLoneSurrogate, stringEnd } from './string'

const COMMA: u32 = 0x2c
const COLON: u32 = 0x3a
const OPEN_BRACE: u32 = 0x7b
const CLOSE_BRACE: u32 = 0x7d
const OPEN_BRACKET: u32 = 0x5b
const CLOSE_BRACKET: u32 = 0x5d

/** 'true', 'alse' and 'null' as little-endian words. */
const TRUE: u32 = 0x65757274
const ALSE: u32 = 0x65736c61
const NULL: u32 = 0x6c6c756e

/** The grammar is broken. */
const BROKEN: i32 = -1
/** The value nests too deep or has too many members for the tables here. */
const TOO_LARGE: i32 = -2
/** Strings of more bytes are remembered, as in long-strings.ts. */
const LONG_STRING: i32 = 256

/** Bytes that a member takes. */
const MEMBER_SIZE: i32 = 16

/** Of the value read last. */
export let memberCount: i32 = 0
export let deepest: i32 = 0
let longCount: i32 = 0

/** Whether the value read last may repeat a key, or has one with an escape, or a lone surrogate. */
export function isSuspect(): bool {
  return mayRepeat || hasLoneSurrogate
}

/** What `readValue` does, and its findings for JavaScript at {@link HEADER}. */
export function value(start: i32, comparesKeys: bool): i32 {
  const end = readValue(start, comparesKeys)
  const header = scratch + HEADER
  store<i32>(header, memberCount)
  store<i32>(header + 4, isSuspect() ? 1 : 0)
  store<i32>(header + 8, deepest)
  store<i32>(header + 12, longCount)
  return end
}

/**
 * Reads the value that begins at `start` (white space before it allowed), as `value` of json-scan.ts
 * does.
 *
 * @returns the offset behind the value, {@link BROKEN} or {@link TOO_LARGE}
 */
export function readValue(start: i32, comparesKeys: bool): i32 {
  const closers = scratch + CLOSERS
  let depth = 0
  let closer: u32 = 0
  let at = start
  deepest = 0
  memberCount = 0
  longCount = 0
  beginValue(comparesKeys)
  forgetSurrogates()

  while (true) {
    at = behindBlanks(at)
    if (depth === 1 && closer === CLOSE_BRACE) store<i32>(lastMember() + 8, at)
    const byte = byteAt(at)
    if (byte === QUOTE) {
      const end = stringEnd(at + 1)
      if (end < 0) return BROKEN
      if (end - at > LONG_STRING) noteLong(at, end)
      at = end
    } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      closer = byte + 2
      if (++depth > DEEPEST) return TOO_LARGE
      if (depth > deepest) deepest = depth
      store<u8>(closers + depth, closer as u8)
      at = behindBlanks(at + 1)
      if (byteAt(at) !== closer) {
        if (closer === CLOSE_BRACKET) continue
        if (depth === 3) store<i32>(lastObject(), at)
        openObject(depth)
        at = readName(at, depth)
        if (at < 0) return at
        continue
      }
      at++
      closer = load<u8>(closers + --depth)
    } else {
      at = scalarEnd(at, byte)
      if (at < 0) return BROKEN
    }

    while (true) {
      if (depth === 0) return at
      if (depth === 1 && closer === CLOSE_BRACE) store<i32>(lastMember() + 12, at)
      at = behindBlanks(at)
      const next = byteAt(at)
      at++
      if (next === COMMA) break
      if (next !== closer) return BROKEN
      if (closer === CLOSE_BRACE) closeObject(depth)
      closer = load<u8>(closers + --depth)
    }
    if (closer === CLOSE_BRACKET) continue
    at = readName(behindBlanks(at), depth)
    if (at < 0) return at
  }
}

/** Reads `"key" :` at `start`; the offset behind the colon, {@link BROKEN} or {@link TOO_LARGE}. */
function readName(start: i32, depth: i32): i32 {
  const end = readKey(start, depth)
  if (end < 0) return BROKEN
  if (depth === 1) {
    if (memberCount++ === MOST_MEMBERS) return TOO_LARGE
    store<i32>(lastMember(), start)
    store<i32>(lastMember() + 4, end)
    store<i32>(lastObject(), 0)
  }
  const at = behindBlanks(end)
  return byteAt(at) === COLON ? at + 1 : BROKEN
}

function lastMember(): i32 {
  return scratch + (MEMBERS - MEMBER_SIZE) + memberCount * MEMBER_SIZE
}

function lastObject(): i32 {
  return scratch + (LAST_OBJECTS - 4) + memberCount * 4
}

/**
 * Where the last object begins in an array that the member at `member` is, behind its brace; 0 where
 * there is none but empty ones.
 */
export function lastObjectOf(member: i32): i32 {
  return load<i32>(scratch + LAST_OBJECTS + (member - scratch - MEMBERS) / (MEMBER_SIZE / 4))
}

/** The offset behind the string at `start`, which the value read last holds. */
export function knownStringEnd(start: i32): i32 {
  const places = scratch + LONG_STRINGS
  for (let place = places + (longCount - 1) * 8; place >= places; place -= 8) {
    if (load<i32>(place) === start) return load<i32>(place + 4)
  }
  return stringEnd(start + 1)
}

/** The offset behind a number or a literal that begins with `byte`, or -1. */
export function scalarEnd(at: i32, byte: u32): i32 {
  if (byte === 0x74) return load<u32>(at) === TRUE ? at + 4 : -1
  if (byte === 0x6e) return load<u32>(at) === NULL ? at + 4 : -1
  if (byte === 0x66) return load<u32>(at + 1) === ALSE ? at + 5 : -1
  return isDigit(byte) || byte === 0x2d ? numberEnd(at) : -1
}

function noteLong(start: i32, end: i32): void {
  if (longCount === MOST_LONG_STRINGS) return
  const place = scratch + LONG_STRINGS + longCount * 8
  store<i32>(place, start)
  store<i32>(place + 4, end)
  longCount++
}
