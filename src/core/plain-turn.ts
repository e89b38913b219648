import type { LongStrings } from './long-strings.ts'
import { skipString } from './skip-value.ts'

/** Who speaks, in the words of the OpenAI API. */
export type Role = 'system' | 'user' | 'assistant' | 'tool'

interface Beginning {
  bytes: Buffer
  role: Role
  sendable: boolean
}

const CLOSE_BRACE = 0x7d
/** Where the spelling of a role stands in a beginning, or the quote before it. */
const SPELLING = 9

/** How the turns of most data sets begin, without and with the spaces of Python, by two bytes. */
const BEGINNINGS = new Map<number, Beginning>()
for (const [key, spelling, value, role] of [
  ['role', 'system', 'content', 'system'],
  ['role', 'user', 'content', 'user'],
  ['role', 'assistant', 'content', 'assistant'],
  ['from', 'system', 'value', 'system'],
  ['from', 'human', 'value', 'user'],
  ['from', 'gpt', 'value', 'assistant'],
] as const) {
  for (const space of ['', ' ']) {
    const bytes = Buffer.from(`{"${key}":${space}"${spelling}",${space}"${value}":${space}"`)
    BEGINNINGS.set(tag(bytes, 0), { bytes, role, sendable: key === 'role' })
  }
}

/**
 * Reads turns that are written as most are, a role and a text, without looking for their members one
 * by one. What was read last stands in fields: there are millions of turns.
 */
export class PlainTurns {
  role: Role = 'user'
  /** In the API's own spelling. */
  sendable = false
  contentStart = 0
  contentEnd = 0

  /** Whether the turn at `start` is such a one; it ends with the byte behind its content. */
  read(bytes: Buffer, start: number, longStrings: LongStrings | undefined): boolean {
    const beginning = BEGINNINGS.get(tag(bytes, start))
    if (beginning === undefined) return false
    const { bytes: expected, role, sendable } = beginning
    for (let index = 0; index < expected.length; index++) {
      if (bytes[start + index] !== expected[index]) return false
    }
    this.role = role
    this.sendable = sendable
    this.contentStart = start + expected.length - 1
    this.contentEnd = skipString(bytes, this.contentStart, longStrings)
    return bytes[this.contentEnd] === CLOSE_BRACE
  }
}

/** What tells the beginnings apart: the first letter of the key, and two bytes of the spelling. */
function tag(bytes: Buffer, start: number): number {
  const at = start + SPELLING
  return (bytes[start + 2]! << 16) | (bytes[at]! << 8) | bytes[at + 1]!
}
