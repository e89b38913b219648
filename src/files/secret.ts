import { readFileSync } from 'node:fs'
import { ioError } from '../core/tool-error.ts'

/**
 * The text of a small file, such as a key or headers.
 *
 * @throws ToolError where it cannot be read
 */
export function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw ioError(error, file, 'read')
  }
}

/** A key in a file, without the white space around it. */
export function readSecret(file: string): string {
  return readText(file).trim()
}
