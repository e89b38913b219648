const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{}:,]|[^\s[\]{}:,"]+/gs

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
  for (const [token] of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') {
      stack.push({ isObject: token === '{', keys: [], values: [] })
      keyNext = token === '{'
    } else if (token === '}' || token === ']') {
      const frame = stack.pop()!
      put(frame.isObject ? objectText(frame, stack.length === 0 ? without : []) : arrayText(frame))
      keyNext = false
    } else if (token === ',') keyNext = stack.at(-1)!.isObject
    else if (token === ':') keyNext = false
    else if (keyNext) stack.at(-1)!.keys.push(spelt(token))
    else put(token.startsWith('"') ? spelt(token) : token)
  }
  return result
}

function spelt(token: string): string {
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
