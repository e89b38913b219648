import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Where a program is installed; undefined where it is not. */
export function findProgram(name: string): string | undefined {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    const path = join(folder, name)
    try {
      accessSync(path, constants.X_OK)
      return path
    } catch {
      // Not in this folder.
    }
  }
  return undefined
}
