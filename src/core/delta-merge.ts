type Json = Record<string, unknown>

/**
 * Puts a delta of a stream onto what came before: strings are appended, arrays joined by their
 * elements' `index`, objects member by member. Applied to all deltas of a value it gives the value
 * that a server sends when nothing is streamed, the indices left out (`withoutIndices`).
 */
export function merged(old: unknown, delta: unknown): unknown {
  if (typeof old === 'string' && typeof delta === 'string') return old + delta
  if (Array.isArray(delta)) return mergedArray(Array.isArray(old) ? old : [], delta)
  if (isObject(old) && isObject(delta)) {
    const all: Json = { ...old }
    for (const [name, value] of Object.entries(delta)) {
      if (value === null && name in all) continue
      all[name] = isLabel(name) ? value : merged(all[name], value)
    }
    return all
  }
  return delta ?? old
}

/** Content that comes in parts: a text part goes on where the last one is of its kind. */
export function mergedParts(old: readonly unknown[], delta: readonly unknown[]): unknown[] {
  const all = [...old]
  for (const part of delta) {
    const last = all.at(-1)
    const goesOn = isObject(part) && isObject(last) && part.type === 'text' && last.type === 'text'
    if (goesOn) all[all.length - 1] = merged(last, part)
    else all.push(part)
  }
  return all
}

/** Tool calls without the `index` that only their deltas have. */
export function withoutIndices(value: unknown): unknown {
  if (!Array.isArray(value)) return value
  return value.map((element: unknown) => {
    if (!isObject(element)) return element
    const { index: _, ...rest } = element
    return rest
  })
}

/** Members that some servers repeat in every delta, and none continues. */
function isLabel(name: string): boolean {
  return name === 'id' || name === 'type' || name === 'index' || name === 'role'
}

function mergedArray(old: readonly unknown[], delta: readonly unknown[]): unknown[] {
  const all = [...old]
  for (const element of delta) {
    const index = isObject(element) && typeof element.index === 'number' ? element.index : -1
    const at = all.findIndex((other) => isObject(other) && other.index === index)
    if (index < 0 || at < 0) all.push(element)
    else all[at] = merged(all[at], element)
  }
  return all
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
