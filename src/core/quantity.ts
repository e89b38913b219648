/**
 * Numbers as people write them in options: strict, since a misread one costs a night
 * (`--concurrency=abc` must not become NaN).
 */

const DURATION_UNITS: Record<string, number> = { ms: 1, '': 1000, s: 1000, m: 60_000, h: 3_600_000 }
const SIZE_UNITS: Record<string, number> = { '': 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }

/** `600`, `600s`, `10m`, `1500ms`, `2h` in milliseconds; a bare number is seconds. */
export function parseDuration(text: string): number | undefined {
  const [, digits, unit] = /^(\d+(?:\.\d+)?)(ms|s|m|h|)$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * DURATION_UNITS[unit ?? '']!
}

/** `4096`, `64K`, `64M`, `2G` in bytes; a K is 1,024. */
export function parseSize(text: string): number | undefined {
  const [, digits, unit] = /^(\d+)([KMG]?)i?B?$/.exec(text) ?? []
  return digits === undefined ? undefined : Number(digits) * SIZE_UNITS[unit ?? '']!
}

/** A whole number without sign. */
export function parseCount(text: string): number | undefined {
  const value = /^\d+$/.test(text) ? Number(text) : undefined
  return value !== undefined && Number.isSafeInteger(value) ? value : undefined
}

/** Any finite decimal number. */
export function parseNumber(text: string): number | undefined {
  if (!/^-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?$/.test(text)) return undefined
  const value = Number(text)
  return Number.isFinite(value) ? value : undefined
}

/** `20%` or `0.2` as a number from 0. */
export function parseShare(text: string): number | undefined {
  const value = parseNumber(text.replace(/%$/, ''))
  if (value === undefined || value < 0) return undefined
  return text.endsWith('%') ? value / 100 : value
}

/** A count with its noun, for people: `1 record`, `2 records`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** A duration for people: `950 ms`, `12 s`, `2 m 5 s`, `1 h 4 m`. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`
  // Rounded before it is taken apart, or there are minutes of 60 s.
  const tenths = Math.round(ms / 100) / 10
  if (tenths < 60) return `${tenths} s`
  const seconds = Math.round(ms / 1000)
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} m ${seconds % 60} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} m`
}
