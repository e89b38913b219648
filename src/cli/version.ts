import { readFileSync } from 'node:fs'

/** The version in package.json, which lies above this file in the source tree and in dist. */
export function packageVersion(): string {
  for (const up of ['../../', '../../../']) {
    try {
      const text = readFileSync(new URL(`${up}package.json`, import.meta.url), 'utf8')
      return (JSON.parse(text) as { version: string }).version
    } catch (error) {
      if ((error as { code?: string }).code !== 'ENOENT') throw error
    }
  }
  return 'unknown'
}
