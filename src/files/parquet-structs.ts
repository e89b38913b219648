import type { SchemaTree } from './parquet-library.ts'
import { type ColumnSource, type PageEntries, ParquetPages } from './parquet-pages.ts'

/** A list of structs of plain values, which conversations are. */
interface StructList {
  /** Definition levels from which on the list, an element, and the element's struct are there. */
  list: number
  element: number
  struct: number
}

/** Whether a column is a list of structs of plain values, and from which levels on it is there. */
export function structList(column: SchemaTree): StructList | undefined {
  const [repeated] = column.children
  if (column.children.length !== 1 || column.element.repetition_type === 'REPEATED')
    return undefined
  const [struct] = repeated!.children
  const isList =
    column.element.converted_type === 'LIST' || column.element.logical_type?.type === 'LIST'
  const isNested =
    repeated!.element.repetition_type === 'REPEATED' && repeated!.children.length === 1
  if (!isList || !isNested || struct!.children.length === 0) return undefined
  if (struct!.element.repetition_type === 'REPEATED') return undefined
  if (struct!.element.logical_type !== undefined || struct!.element.converted_type !== undefined) {
    return undefined
  }
  const isPlain = ({ children, element }: SchemaTree): boolean =>
    children.length === 0 && element.repetition_type !== 'REPEATED'
  if (!struct!.children.every(isPlain)) return undefined
  const list = column.element.repetition_type === 'OPTIONAL' ? 1 : 0
  const element = list + 1
  return {
    list,
    element,
    struct: element + (struct!.element.repetition_type === 'OPTIONAL' ? 1 : 0),
  }
}

/**
 * A column of lists of structs, put together row by row from the levels of its leaves: the general
 * way makes ten objects of each message.
 */
export class ParquetStructs {
  #levels: StructList
  #leaves: Leaf[]

  constructor(sources: readonly ColumnSource[], levels: StructList) {
    this.#levels = levels
    this.#leaves = sources.map((source) => new Leaf(source))
  }

  /**
   * Takes the next rows.
   *
   * @throws Error where the pages are damaged or cut, or the column has fewer rows
   */
  async take(count: number): Promise<unknown[]> {
    const rows: unknown[] = []
    while (rows.length < count) {
      for (const leaf of this.#leaves) {
        // A loop that waits for nothing costs little; a wait for each row would not.
        if (!leaf.findRow()) await leaf.readRow()
      }
      rows.push(this.#row())
    }
    return rows
  }

  #row(): unknown {
    const { list, element, struct } = this.#levels
    const first = this.#leaves[0]!
    const size = first.rowSize
    const level = first.level
    const row: unknown[] | null = level < list ? null : []
    for (const leaf of this.#leaves) {
      if (leaf.rowSize !== size) throw new Error('the columns of a list do not fit together')
    }
    for (let index = 0; index < size; index++) {
      const isThere = first.level >= element
      const value: Record<string, unknown> | null = first.level >= struct ? {} : null
      for (const leaf of this.#leaves) {
        const own = leaf.next()
        if (value !== null) value[leaf.name] = own
      }
      if (isThere) row?.push(value)
    }
    return row
  }
}

const NO_ENTRIES: PageEntries = { repetitionLevels: [], definitionLevels: [], values: [] }

/** The entries of a leaf column, page after page. */
class Leaf {
  readonly name: string
  /** Entries of the row that was found. */
  rowSize = 0
  #pages: ParquetPages
  #highest: number
  #page = NO_ENTRIES
  #at = 0
  #valueAt = 0

  constructor(source: ColumnSource) {
    this.#pages = new ParquetPages(source)
    const { schemaPath } = this.#pages
    this.name = schemaPath.at(-1)!.element.name
    this.#highest = schemaPath.filter(
      ({ element }, depth) => depth > 0 && element.repetition_type !== 'REQUIRED',
    ).length
  }

  /** The definition level of the next entry. */
  get level(): number {
    return this.#page.definitionLevels[this.#at] ?? this.#highest
  }

  /** Takes the next entry's value. */
  next(): unknown {
    const value = this.level === this.#highest ? this.#page.values[this.#valueAt++] : null
    this.#at++
    return value
  }

  /** Finds where the next row ends; returns false where the next page must be read for that. */
  findRow(): boolean {
    const levels = this.#page.repetitionLevels
    let end = this.#at + 1
    while (end < levels.length && levels[end]! > 0) end++
    this.rowSize = end - this.#at
    return end < levels.length || (end === levels.length && this.#pages.ended)
  }

  /** The same, with the pages that are needed. */
  async readRow(): Promise<void> {
    do {
      if (this.#pages.ended) throw new Error(`the column ${this.#pages.path} has too few rows`)
      const entries = await this.#pages.entries()
      if (entries !== undefined) this.#append(entries)
    } while (!this.findRow())
  }

  #append(entries: PageEntries): void {
    const { repetitionLevels, definitionLevels, values } = this.#page
    const left = repetitionLevels.length - this.#at
    if (left > 0) {
      this.#page = {
        repetitionLevels: joined(repetitionLevels, this.#at, entries.repetitionLevels),
        definitionLevels: joined(
          this.#filled({ repetitionLevels, definitionLevels, values }),
          this.#at,
          this.#filled(entries),
        ),
        values: joined(values, this.#valueAt, entries.values),
      }
    } else this.#page = entries
    this.#at = 0
    this.#valueAt = 0
  }

  #filled({ definitionLevels, repetitionLevels }: PageEntries): ArrayLike<number> {
    if (definitionLevels.length > 0) return definitionLevels
    return Array.from(repetitionLevels, () => this.#highest)
  }
}

function joined<T>(first: ArrayLike<T>, from: number, second: ArrayLike<T>): T[] {
  const all: T[] = []
  for (let index = from; index < first.length; index++) all.push(first[index]!)
  for (let index = 0; index < second.length; index++) all.push(second[index]!)
  return all
}
