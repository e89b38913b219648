type Headers = Record<string, string | string[] | undefined>

const NAMES = [
  ['x-ratelimit-remaining-requests', 'x-ratelimit-reset-requests'],
  ['x-ratelimit-remaining-tokens', 'x-ratelimit-reset-tokens'],
] as const

/** `1s`, `6m0s`, `1h30m`, `12ms` as OpenAI's servers write durations; in milliseconds. */
function parseReset(text: string): number | undefined {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)]
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) return undefined
  const units: Record<string, number> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 }
  return parts.reduce((sum, [, number, unit]) => sum + Number(number) * units[unit!]!, 0)
}

/**
 * How long a server wants no further request, by its `x-ratelimit-remaining-*` and
 * `x-ratelimit-reset-*` headers (OpenAI, "Rate limits in headers"): 0 while something remains.
 *
 * @returns milliseconds
 */
export function restByHeaders(headers: Headers): number {
  let rest = 0
  for (const [remainingName, resetName] of NAMES) {
    const remaining = headers[remainingName]
    if (typeof remaining !== 'string' || Number(remaining) > 0) continue
    const reset = headers[resetName]
    if (typeof reset === 'string') rest = Math.max(rest, parseReset(reset.trim()) ?? 0)
  }
  return rest
}
