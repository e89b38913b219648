/** Less than this of a secret gives nothing away. */
const SHORTEST_PIECE = 4
/** Headers whose values are secrets: Authorization, X-Api-Key, Ocp-Apim-Subscription-Key, Cookie. */
const SECRET_HEADER = /(?:auth(?:orization)?|key|token|secret|password|cookie)$/i

/** What no message may show: the key, and the secrets that a file of headers holds. */
export class Secrets {
  #forms: string[]

  /** @param headers name and value of each */
  constructor(key: string | undefined, headers: readonly (readonly [string, string])[]) {
    const values = headers.flatMap(([name, value]) => secretsOf(name, value))
    const forms = (key === undefined ? values : [key, ...values]).flatMap(formsOf)
    // A secret may hold another one, such as a cookie its value.
    this.#forms = forms.filter((form) => form !== '').sort((a, b) => b.length - a.length)
  }

  /**
   * A message, or what is kept of an error, in which they are masked. Nothing else passes through
   * here: what a model said is an answer, whatever words of it are a key.
   */
  inMessage(text: string): string {
    return this.#forms.reduce(withoutSecret, text)
  }
}

/** Of `Bearer TOKEN` the token, of cookies each value. */
function secretsOf(name: string, value: string): string[] {
  if (!SECRET_HEADER.test(name)) return []
  if (!/cookie$/i.test(name)) return [value.split(/\s+/).at(-1) ?? '']
  return [value, ...value.split(';').map((cookie) => cookie.replace(/^[^=]*=/, '').trim())]
}

/** A secret as it is, and URL-encoded in the ways of several languages. */
function formsOf(secret: string): string[] {
  const encoded = encodeURIComponent(secret)
  const withSlashes = encoded.replaceAll('%2F', '/')
  const codes = [encoded, withSlashes]
  const lower = codes.map((text) => text.replace(/%../g, (code) => code.toLowerCase()))
  return [...new Set([secret, ...codes, ...lower])]
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
