import { readlinkSync, realpathSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'

/** Symbolic links that are followed one behind the other, as Linux does. */
const MOST_LINKS = 40

/** The name of a file that need not be there yet, whatever links lead to it or to its folder. */
export function placeOf(file: string): string {
  let name = resolve(file)
  try {
    for (let links = 0; links < MOST_LINKS; links++) {
      name = join(realpathSync(dirname(name)), basename(name))
      name = resolve(dirname(name), readlinkSync(name))
    }
  } catch {
    // It is no link, or leads to no folder.
  }
  return name
}
