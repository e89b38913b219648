/** How often and how late a failed request is tried again. */
export interface RetrySettings {
  /** Tries after the first one. */
  retries: number
  /** The first pause, in milliseconds; it doubles with every attempt. */
  base: number
  /** The longest pause of ours, in milliseconds; a server may ask for more. */
  cap: number
}

export const RETRY_DEFAULTS = { base: 1000, cap: 60_000 }

/**
 * The pause before the next attempt: full jitter, uniform between 0 and the exponential backoff
 * (AWS Architecture Blog, "Exponential Backoff And Jitter"), so that a thousand requests that failed
 * together do not come back together. Where the server named a time, that time and a tenth of it at
 * random.
 *
 * @param attempt the attempt that failed, from 1
 * @param retryAfter milliseconds that the server asked for
 * @param random uniform in [0, 1)
 */
export function retryDelay(
  settings: RetrySettings,
  attempt: number,
  retryAfter: number | undefined,
  random: () => number,
): number {
  const backoff = random() * Math.min(settings.cap, settings.base * 2 ** (attempt - 1))
  if (retryAfter === undefined) return backoff
  // `Retry-After: 0` to a thousand requests must not bring a thousand back at once.
  if (retryAfter < settings.base) return Math.max(retryAfter, backoff)
  return retryAfter * (1 + 0.1 * random())
}

type Headers = Record<string, string | string[] | undefined>

/**
 * The pause that a server asks for, in milliseconds: `retry-after-ms`, or `Retry-After` in seconds
 * or as a date (RFC 9110, 10.2.3).
 *
 * @param now milliseconds since 1970, for the date
 */
export function retryAfterOf(headers: Headers, now: number): number | undefined {
  const ms = one(headers['retry-after-ms'])
  if (ms !== undefined && /^\d+(\.\d+)?$/.test(ms)) return Number(ms)
  const value = one(headers['retry-after'])?.trim()
  if (value === undefined) return undefined
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value) * 1000
  const date = httpDate(value)
  return Number.isNaN(date) ? undefined : Math.max(0, date - now)
}

/** `Sun Nov  6 08:49:37 1994`, which names no time zone: it is GMT (RFC 9110, 5.6.7). */
const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d [\d:]{8} \d{4}$/

/** Date.parse makes a date of nearly anything with a digit in it, such as -5. */
function httpDate(text: string): number {
  if (ASCTIME.test(text)) return Date.parse(`${text} GMT`)
  return /^[A-Z][a-z]+, /.test(text) ? Date.parse(text) : Number.NaN
}

/** The server's own word on whether another try makes sense (`x-should-retry`). */
export function shouldRetryOf(headers: Headers): boolean | undefined {
  const value = one(headers['x-should-retry'])
  if (value === 'true') return true
  return value === 'false' ? false : undefined
}

function one(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value
}
