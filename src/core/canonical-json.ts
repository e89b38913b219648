/** What is neither a string nor white space: a bracket, a colon, a comma, or a bare word. */
const BARE = /[[\]{}:,]|[^\s[\]{}:,"]+/y
const WHITE = /\s*/y

/** The tokens of a valid JSON text. A pattern for whole strings runs out of stack at 8 MB. */
function* tokens(text: string): Generator<string, void, void> {
  for (let at = 0; at < text.length; ) {
    WHITE.lastIndex = at
    WHITE.test(text)
    const start = WHITE.lastIndex
    if (start === text.length) return
    if (text[start] === '"') at = stringEnd(text, start)
    else {
      BARE.lastIndex = start
      BARE.test(text)
      at = BARE.lastIndex
    }
    yield text.slice(start, at)
  }
}

/** Where the string that begins at `start` ends, its quote included. */
function stringEnd(text: string, start: number): number {
  let quote = start
  for (;;) {
    quote = text.indexOf('"', quote + 1)
    let before = quote
    while (text[before - 1] === '\\') before--
    if ((quote - before) % 2 === 0) return quote + 1
  }
}

interface Frame {
  isObject: boolean
  keys: string[]
  values: string[]
}

/**
 * JSON text in one spelling: members sorted by key, no white space, strings with the escapes that
 * JSON.stringify gives, numbers as they were written (JSON.parse would change `1.0` and 2^53 + 1).
 * Of a member given twice the last one counts.
 *
 * @param text one JSON value, valid
 * @param without names of top-level members to leave out
 */
export function canonicalJson(text: string, without: readonly string[] = []): string {
  const stack: Frame[] = []
  let result = ''
  const put = (value: string): void => {
    const frame = stack.at(-1)
    if (frame === undefined) result = value
    else frame.values.push(value)
  }
  let keyNext = false
  for (const token of tokens(text)) {
    if (token === '{' || token === '[') {
      stack.push({ isObject: token === '{', keys: [], values: [] })
      keyNext = token === '{'
    } else if (token === '}' || token === ']') {
      const frame = stack.pop()!
      put(frame.isObject ? objectText(frame, stack.length === 0 ? without : []) : arrayText(frame))
      keyNext = false
    } else if (token === ',') keyNext = stack.at(-1)!.isObject
    else if (token === ':') keyNext = false
    else if (keyNext) stack.at(-1)!.keys.push(canonicalString(token))
    else put(token.startsWith('"') ? canonicalString(token) : token)
  }
  return result
}

/** A string token with the escapes that JSON.stringify gives, and no others. */
export function canonicalString(token: string): string {
  return token.includes('\\') ? JSON.stringify(JSON.parse(token)) : token
}

function objectText(frame: Frame, without: readonly string[]): string {
  const members = new Map(frame.keys.map((key, index) => [key, frame.values[index]]))
  for (const name of without) members.delete(JSON.stringify(name))
  const keys = [...members.keys()].sort()
  return `{${keys.map((key) => `${key}:${members.get(key)}`).join(',')}}`
}

function arrayText(frame: Frame): string {
  return `[${frame.values.join(',')}]`
}
