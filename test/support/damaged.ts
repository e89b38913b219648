import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command } from '../../bin/repair-truncated.ts'
import { removedHex } from './cases.ts'
import { newFolder, runInProcess } from './run.ts'

/** Two records of one shape, the beginning of a third, and a line that is none. */
export const WHOLE = '{"id":1,"t":"a"}\n{"id":2,"t":"b"}\n'
export const TORN = '{"id":3,"t":"c'
export const BAD = '{"id":3,}\n'

/** A file in a new folder. */
export function fileOf(content: string | Uint8Array): string {
  const path = join(newFolder(), 'f.jsonl')
  writeFileSync(path, content)
  return path
}

export function read(path: string): string {
  return readFileSync(path, 'utf8')
}

export function repair(...args: string[]) {
  return runInProcess(command, args)
}

/** Repairs text given on standard input. */
export async function repairText(text: string, ...args: string[]) {
  const result = await runInProcess(command, args, { input: text })
  return { ...result, text: result.stdout.toString() }
}

/** The texts of a removed file. */
export function pieceTexts(path: string): string[] {
  return removedHex(path).map((hex) => Buffer.from(hex, 'hex').toString())
}
