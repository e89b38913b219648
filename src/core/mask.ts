/** Less than this of a secret gives nothing away. */
const SHORTEST_PIECE = 4

/** A text in which the secret is masked, also a piece of it at which an excerpt ends (`…`). */
export function withoutSecret(text: string, secret: string): string {
  let masked = text.replaceAll(secret, '***')
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
