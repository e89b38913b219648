/** Less than this of a secret gives nothing away. */
const SHORTEST_PIECE = 4
/** Shorter values of other headers are no secrets, and shorter secrets stand in answers by chance. */
const SHORTEST_SECRET = 8
/** Headers whose values are secrets, however short. */
const SECRET_HEADERS = new Set([
  'authorization',
  'proxy-authorization',
  'api-key',
  'x-api-key',
  'cookie',
])

/** What no message may show: the key, and what a file of headers holds. */
export class Secrets {
  #all: string[]
  #long: string[]

  /** @param headers name and value of each */
  constructor(key: string | undefined, headers: readonly (readonly [string, string])[]) {
    const values = headers.flatMap(([name, value]) => secretsOf(name.toLowerCase(), value))
    const all = key === undefined ? values : [key, ...values]
    // A secret may hold another one, such as a cookie its value.
    this.#all = all.filter((secret) => secret !== '').sort((a, b) => b.length - a.length)
    this.#long = this.#all.filter(isLong)
  }

  get none(): boolean {
    return this.#all.length === 0
  }

  /** A message in which they are masked. */
  inMessage(text: string): string {
    return this.#all.reduce(withoutSecret, text)
  }

  /** A text of an answer; a short secret, such as the key EMPTY, is a word like any other there. */
  inAnswer(text: string): string {
    return this.#long.reduce(withoutSecret, text)
  }
}

/** Of `Bearer TOKEN` the token, of cookies each value. */
function secretsOf(name: string, value: string): string[] {
  const last = value.split(/\s+/).at(-1) ?? ''
  if (!SECRET_HEADERS.has(name)) return [last].filter(isLong)
  if (name !== 'cookie') return [last]
  return [value, ...value.split(';').map((cookie) => cookie.replace(/^[^=]*=/, '').trim())]
}

function isLong(secret: string): boolean {
  return secret.length >= SHORTEST_SECRET
}

/** A text in which the secret is masked, also a piece of it at which an excerpt ends (`…`). */
export function withoutSecret(text: string, secret: string): string {
  let masked = text.replaceAll(secret.length < SHORTEST_PIECE ? wordOf(secret) : secret, '***')
  for (let end = masked.indexOf('…'); end >= 0; end = masked.indexOf('…', end + 1)) {
    const before = masked.slice(Math.max(0, end - secret.length), end)
    for (
      let length = Math.min(before.length, secret.length - 1);
      length >= SHORTEST_PIECE;
      length--
    ) {
      if (!before.endsWith(secret.slice(0, length))) continue
      masked = `${masked.slice(0, end - length)}***${masked.slice(end)}`
      end += 3 - length
      break
    }
  }
  return masked
}

/** Within a longer word so little tells nothing, and masking it would spoil every message. */
function wordOf(secret: string): RegExp {
  return new RegExp(`(?<!\\w)${secret.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')}(?!\\w)`, 'g')
}
