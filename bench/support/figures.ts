import { significant } from './reporter.ts'

const MEGA = 1e6

/** Bytes in a time as `1,243 MB/s`. */
export function speed(bytes: number, seconds: number): string {
  return `${significant(bytes / MEGA / seconds)} MB/s`
}

export function megabytes(bytes: number): string {
  return `${significant(bytes / MEGA)} MB`
}

export function time(seconds: number): string {
  return seconds < 1 ? `${significant(seconds * 1000)} ms` : `${significant(seconds)} s`
}
