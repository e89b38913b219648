import type { LineCode } from './json-problem.ts'

const SENTENCES: Record<LineCode, string> = {
  truncated: 'the line ends before its value does',
  syntax: 'this is no JSON',
  'multiple-values': 'something follows the value: one value a line',
  'trailing-comma': 'a comma follows the value',
  blank: 'the line is blank',
  nul: 'a NUL byte',
  bom: 'a byte order mark (U+FEFF)',
  utf8: 'the bytes are no UTF-8',
  'lone-surrogate': 'half a surrogate pair: many readers cannot take it',
  'control-char': 'a raw control character in a string',
  nan: 'NaN and Infinity are no JSON',
  'duplicate-key': 'the object has this key already: readers disagree on which one counts',
  'too-deep': 'nested deeper than --max-depth',
  'python-repr': 'this looks like a Python dict: write it with json.dumps, not str',
}

/** The sentence of a line problem, with the offending byte or key where that helps. */
export function problemText(code: LineCode, bytes: Uint8Array, at: number, end: number): string {
  const sentence = SENTENCES[code]
  if (
    code === 'syntax' ||
    code === 'control-char' ||
    code === 'utf8' ||
    code === 'multiple-values'
  ) {
    return at < end ? `${sentence} (at ${byteText(bytes[at]!)})` : sentence
  }
  return sentence
}

function byteText(byte: number): string {
  const readable = byte > 0x20 && byte < 0x7f
  return readable
    ? `'${String.fromCharCode(byte)}'`
    : `byte 0x${byte.toString(16).padStart(2, '0')}`
}
