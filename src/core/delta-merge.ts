type Json = Record<string, unknown>

/**
 * Puts a delta of a stream onto what came before: strings are appended, arrays joined by their
 * elements' `index`, objects member by member. Applied to all deltas of a value it gives the value
 * that a server sends when nothing is streamed, the indices left out (`withoutIndices`).
 *
 * @param old is changed, so that a delta costs the same however much has come
 * @param delta becomes part of the result
 */
export function merged(old: unknown, delta: unknown): unknown {
  if (typeof old === 'string' && typeof delta === 'string') return old + delta
  if (Array.isArray(delta)) return mergedArray(Array.isArray(old) ? old : [], delta)
  if (isObject(old) && isObject(delta)) {
    for (const [name, value] of Object.entries(delta)) {
      if (value === null && name in old) continue
      old[name] = isLabel(name) ? value : merged(old[name], value)
    }
    return old
  }
  return delta ?? old
}

/** Content that comes in parts: a text part goes on where the last one is of its kind. */
export function mergedParts(old: unknown[], delta: readonly unknown[]): unknown[] {
  for (const part of delta) {
    const last = old.at(-1)
    const goesOn = isObject(part) && isObject(last) && part.type === 'text' && last.type === 'text'
    if (goesOn) old[old.length - 1] = merged(last, part)
    else old.push(part)
  }
  return old
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

function mergedArray(all: unknown[], delta: readonly unknown[]): unknown[] {
  for (const element of delta) {
    const index = indexOf(element)
    if (index === undefined) {
      all.push(element)
      continue
    }
    const places = placesIn(all)
    const at = places.get(index)
    if (at !== undefined) all[at] = merged(all[at], element)
    else places.set(index, all.push(element) - 1)
  }
  return all
}

/** Where the elements with an index are in the arrays that have such. */
const placesOf = new WeakMap<unknown[], Map<number, number>>()

function placesIn(all: unknown[]): Map<number, number> {
  let places = placesOf.get(all)
  if (places !== undefined) return places
  places = new Map()
  for (const [at, element] of all.entries()) {
    const index = indexOf(element)
    if (index !== undefined && !places.has(index)) places.set(index, at)
  }
  placesOf.set(all, places)
  return places
}

/** Undefined where an element has none, or one that is none. */
function indexOf(element: unknown): number | undefined {
  if (!isObject(element)) return undefined
  const { index } = element
  return typeof index === 'number' && index >= 0 ? index : undefined
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
