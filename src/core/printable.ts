/** C0, DEL, C1, line and paragraph separators, bidirectional overrides. */
const UNPRINTABLE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu

/**
 * A text with control characters as escapes: data must not drive the terminal, nor turn around what
 * stands beside it. Of JSON in one line it makes JSON of the same value.
 */
export function printable(text: string): string {
  return text.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
