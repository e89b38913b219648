import { type GrammarState, JsonGrammar } from './json-grammar.ts'

/** What can be wrong with one line. The codes are part of the interface: scripts match on them. */
export type LineCode =
  | 'truncated'
  | 'syntax'
  | 'multiple-values'
  | 'trailing-comma'
  | 'blank'
  | 'nul'
  | 'bom'
  | 'utf8'
  | 'lone-surrogate'
  | 'control-char'
  | 'nan'
  | 'duplicate-key'
  | 'too-deep'
  | 'python-repr'

export interface LineProblem {
  code: LineCode
  /** Offset of the offending byte in the buffer; the line's end where something is missing. */
  at: number
}

/**
 * Finds the first grammar problem of the line from `start` to `end` (its 0x0A excluded, a BOM
 * skipped by the caller). The first byte with which the line can no longer be completed decides.
 *
 * @param terminated whether a line feed follows; without one a bare number may be half a number
 * @returns undefined where the line is one whole value
 */
export function grammarProblem(
  bytes: Uint8Array,
  start: number,
  end: number,
  terminated: boolean,
): LineProblem | undefined {
  // CR directly before LF belongs to the line end, even where a string is open.
  const stop = terminated && end > start && bytes[end - 1] === 0x0d ? end - 1 : end
  if (isBlankRange(bytes, start, stop)) return { code: 'blank', at: start }
  const grammar = new JsonGrammar()
  const at = grammar.feed(bytes, start, stop)
  if (at < 0) return endProblem(grammar, stop, terminated)
  if (bytes[at] === 0) return { code: 'nul', at }
  if (grammar.state === 'utf8' || grammar.sequenceStart >= 0) {
    return { code: 'utf8', at: grammar.sequenceStart }
  }
  return { code: offenceCode(grammar, bytes, at, stop), at }
}

function endProblem(
  grammar: JsonGrammar,
  end: number,
  terminated: boolean,
): LineProblem | undefined {
  if (grammar.state === 'utf8') return { code: 'utf8', at: grammar.sequenceStart }
  if (grammar.complete && (terminated || !grammar.openNumber)) return undefined
  return { code: 'truncated', at: end }
}

/** States in which a string goes on, be it in the middle of an escape. */
const IN_STRING: ReadonlySet<GrammarState> = new Set(['string', 'escape', 'hex'])

function offenceCode(grammar: JsonGrammar, bytes: Uint8Array, at: number, end: number): LineCode {
  const byte = bytes[at]!
  if (byte >= 0x80 && !beginsCharacter(bytes, at, end)) return 'utf8'
  if (grammar.complete) {
    if (byte === 0x2c && isBlankRange(bytes, at + 1, end)) return 'trailing-comma'
    return grammar.state === 'done' ? 'multiple-values' : 'syntax'
  }
  if (byte < 0x20 && IN_STRING.has(grammar.state)) return 'control-char'
  if (nanAt(grammar, bytes, at, end)) return 'nan'
  if (pythonAt(grammar, bytes, at, end)) return 'python-repr'
  return 'syntax'
}

/** NaN and the infinities, as Python's json, numpy and careless writers put them. */
function nanAt(grammar: JsonGrammar, bytes: Uint8Array, at: number, end: number): boolean {
  if (grammar.state === 'literal') return wordAt(bytes, at - 1, end, 'nan')
  if (grammar.state !== 'minus' && !expectsValue(grammar)) return false
  return ['NaN', 'nan', 'Infinity', 'inf'].some((word) => wordAt(bytes, at, end, word))
}

/** What `str()` of a Python dict or list has where JSON would have a key or a value. */
function pythonAt(grammar: JsonGrammar, bytes: Uint8Array, at: number, end: number): boolean {
  if (grammar.depth === 0) return false
  if (bytes[at] === 0x27) {
    return expectsValue(grammar) || grammar.state === 'key' || grammar.state === 'first-key'
  }
  if (!expectsValue(grammar)) return false
  return ['True', 'False', 'None'].some((word) => wordAt(bytes, at, end, word))
}

function expectsValue(grammar: JsonGrammar): boolean {
  return grammar.state === 'value' || grammar.state === 'first-element'
}

function wordAt(bytes: Uint8Array, at: number, end: number, word: string): boolean {
  if (at + word.length > end) return false
  for (let i = 0; i < word.length; i++) {
    if (bytes[at + i] !== word.charCodeAt(i)) return false
  }
  return true
}

/** Whether a whole UTF-8 character begins at `at`. */
function beginsCharacter(bytes: Uint8Array, at: number, end: number): boolean {
  const probe = new JsonGrammar()
  probe.state = 'string'
  for (let i = at; i < Math.min(end, at + 4); i++) {
    if (probe.feed(bytes, i, i + 1) >= 0) return false
    if (probe.state === 'string') return true
  }
  return false
}

/** Whether the range holds nothing but white space that may stand inside a line. */
export function isBlankRange(bytes: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    const byte = bytes[at]
    if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0d) return false
  }
  return true
}
