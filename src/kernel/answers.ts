import { behindBlanks, byteAt, QUOTE } from './bytes'
import { findMembers, hasEscape, memberWith, nameOf, valueEnd, valueStart, writeKey } from './names'
import { knownStringEnd, lastObjectOf, scalarEnd } from './value'

/** 32-bit numbers in a row: of AnswerTable in answer-look.ts. */
export const ANSWER_COLUMNS: i32 = 5
/** That the record has a key and is an answer with which nothing is wrong, as answer-look.ts has it. */
const WHOLE: i32 = 3

/** The names behind those of keys: first the members whose records are left to JavaScript, */
const LEFT: i32 = 4
/** then those that are looked at, */
const STATUS: i32 = 4
const FINISH_REASON: i32 = 5
const CONVERSATIONS: i32 = 6
const TEXT: i32 = 7
/** those of a message, */
const CONTENT: i32 = 8
const VALUE: i32 = 9
/** and words that are values. */
const SUCCESS: i32 = 10
const LENGTH: i32 = 11
const CONTENT_FILTER: i32 = 12
export const NAMES_OF_ANSWERS: i32 = 13

const CLOSE_BRACE: u32 = 0x7d
const CLOSE_BRACKET: u32 = 0x5d
const LETTER_N: u32 = 0x6e

/**
 * Writes the row of an AnswerTable for the record read last.
 *
 * @param keys how many names of keys there are
 * @returns false for a record that may be less than a whole answer in fanout-complete's form
 */
export function answerRow(keys: i32, row: i32): bool {
  const met = findMembers(keys + NAMES_OF_ANSWERS)
  const has = met >> keys
  if ((has & ((1 << LEFT) - 1)) !== 0) return false
  if (!isWhole(has, keys) || !writeKey(met, keys, row + 4)) return false
  store<i32>(row, WHOLE)
  return true
}

/** What own-answer.ts calls whole. */
function isWhole(has: i32, keys: i32): bool {
  if (((has >> STATUS) & 1) !== 0) {
    const status = memberWith(keys + STATUS)
    if (wordOf(valueStart(status), valueEnd(status), keys) !== SUCCESS) return false
  }
  if (((has >> FINISH_REASON) & 1) !== 0) {
    const reason = memberWith(keys + FINISH_REASON)
    if (mayBeCut(valueStart(reason), valueEnd(reason), keys)) return false
  }
  if (((has >> CONVERSATIONS) & 1) !== 0) return isAnswered(memberWith(keys + CONVERSATIONS), keys)
  return ((has >> TEXT) & 1) === 0 || isFilled(valueStart(memberWith(keys + TEXT)))
}

/** Which of the names behind those of keys a string is; -1 for any other value. */
function wordOf(start: i32, end: i32, keys: i32): i32 {
  return byteAt(start) === QUOTE ? nameOf(start, end, keys + NAMES_OF_ANSWERS) - keys : -1
}

function mayBeCut(start: i32, end: i32, keys: i32): bool {
  if (byteAt(start) !== QUOTE) return false
  if (hasEscape(start, end)) return true
  const word = wordOf(start, end, keys)
  return word === LENGTH || word === CONTENT_FILTER
}

/** Whether the last message of a conversation surely has content. */
function isAnswered(conversations: i32, keys: i32): bool {
  const first = lastObjectOf(conversations)
  if (first === 0) return false
  let content = 0
  let value = 0
  let at = first
  while (true) {
    const keyEnd = knownStringEnd(at)
    const name = nameOf(at, keyEnd, keys + NAMES_OF_ANSWERS) - keys
    // Behind the colon.
    at = behindBlanks(behindBlanks(keyEnd) + 1)
    if (name === CONTENT) content = at
    if (name === VALUE) value = at
    at = plainEnd(at)
    if (at < 0) return false
    at = behindBlanks(at)
    if (byteAt(at) === CLOSE_BRACE) break
    at = behindBlanks(at + 1)
  }
  // Behind the message the array ends, or it is not the last.
  if (byteAt(behindBlanks(at + 1)) !== CLOSE_BRACKET) return false
  if (content !== 0 && byteAt(content) !== LETTER_N) return isFilled(content)
  return value !== 0 && isFilled(value)
}

/** The offset behind a value of the record read last, which is no array nor object; -1 for those. */
function plainEnd(at: i32): i32 {
  return byteAt(at) === QUOTE ? knownStringEnd(at) : scalarEnd(at, byteAt(at))
}

/** A string with something in it. */
function isFilled(at: i32): bool {
  return byteAt(at) === QUOTE && byteAt(at + 1) !== QUOTE
}
