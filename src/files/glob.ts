import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'

/**
 * The files that a quoted pattern with `*`, `?` or `[...]` names, sorted by name. A name without a
 * pattern, or one that exists as it is written, stands for itself, so that a missing file can be
 * told from a pattern that matches none.
 */
export async function expandGlob(pattern: string): Promise<string[]> {
  if (!hasPattern(pattern) || (await exists(pattern))) return [pattern]
  const parents = dirname(pattern) === '.' ? ['.'] : await expandGlob(dirname(pattern))
  const name = nameExpression(basename(pattern))
  const found: string[] = []
  for (const parent of parents) {
    const entries = await readdir(parent).catch(() => [])
    for (const entry of entries.sort((a, b) => (a < b ? -1 : 1))) {
      if (name.test(entry))
        found.push(pattern.startsWith('./') || parent !== '.' ? join(parent, entry) : entry)
    }
  }
  return found
}

function hasPattern(pattern: string): boolean {
  return /[*?[]/.test(pattern)
}

/** As in the shell, a leading dot must be written. */
function nameExpression(pattern: string): RegExp {
  const source = pattern.replace(/\[!?[^\]]+\]|[*?]|[.+^${}()|\\[\]]/g, (part) => {
    if (part === '*') return '[^/]*'
    if (part === '?') return '[^/]'
    if (part.length > 1) return part.replace(/^\[!/, '[^').replaceAll('\\', '\\\\')
    return `\\${part}`
  })
  return new RegExp(`^${pattern.startsWith('.') ? '' : '(?!\\.)'}${source}$`, 'u')
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
