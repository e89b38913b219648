/** Adds a value to those of late, of which so many are kept. */
export function note(list: number[], value: number, most: number): void {
  list.push(value)
  if (list.length > most) list.shift()
}
