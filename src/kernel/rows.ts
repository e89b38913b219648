import { ANSWER_COLUMNS, answerRow, NAMES_OF_ANSWERS } from './answers'
import { KEY_COLUMNS, keyRow } from './keys'
import { MOST_ROWS, ROWS, scratch } from './layout'
import { lineFeedFrom, recordLine } from './lines'
import { beginNames } from './names'
import { isSuspect, readValue } from './value'

/** Of the last call: rows that are left to JavaScript, and where the first line is that has none. */
let left: i32 = 0
let next: i32 = 0

export function rowsLeft(): i32 {
  return left
}

export function nextLine(): i32 {
  return next
}

/**
 * Writes the rows of a KeyTable for the lines from `start` on, {@link MOST_ROWS} at most. A line of
 * which more has to be known than is known here (an escape in its key, no JSON) is left to JavaScript:
 * its row begins with the complement of where it starts.
 *
 * @param end behind the last line feed
 * @param keys how many names of keys there are, the first the best
 * @returns how many rows, or -1 where a line has no line feed
 */
export function keyRows(start: i32, end: i32, keys: i32): i32 {
  beginNames(keys + 1)
  return rows(start, end, keys, false)
}

/** The same of an AnswerTable. */
export function answerRows(start: i32, end: i32, keys: i32): i32 {
  beginNames(keys + NAMES_OF_ANSWERS)
  return rows(start, end, keys, true)
}

function rows(start: i32, end: i32, keys: i32, ofAnswers: bool): i32 {
  const rowSize = (ofAnswers ? ANSWER_COLUMNS : KEY_COLUMNS) * 4
  let count = 0
  left = 0
  next = start
  for (; next < end && count < MOST_ROWS; count++) {
    const row = scratch + ROWS + count * rowSize
    const valueEnd = readValue(next, false)
    const lineFeed = recordLine(valueEnd)
    if (lineFeed >= 0 && lineFeed < end && !isSuspect()) {
      const isTold = ofAnswers
        ? answerRow(keys, row)
        : keyRow(next, valueEnd, keys, lineFeed + 1, row)
      if (isTold) {
        next = lineFeed + 1
        continue
      }
    }
    const other = lineFeedFrom(next, end)
    if (other < 0) return -1
    store<i32>(row, ~next)
    next = other + 1
    left++
  }
  return count
}
