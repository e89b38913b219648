import type { ColumnSource } from './parquet-pages.ts'
import { ParquetPages } from './parquet-pages.ts'

/** One leaf column of a row group, decoded page by page as its rows are taken. */
export class ParquetColumn {
  #pages: ParquetPages
  #repeated: boolean
  /** Rows decoded and not taken yet; of a repeated column the last one may go on in the next page. */
  #rows: unknown[] = []
  /** Rows at the beginning of `#rows` that were taken: moving up the rest each time would cost more. */
  #taken = 0

  constructor(source: ColumnSource) {
    this.#pages = new ParquetPages(source)
    this.#repeated = this.#pages.schemaPath.some(
      ({ element }) => element.repetition_type === 'REPEATED',
    )
  }

  /** The column's path as hyparquet names it. */
  get path(): string {
    return this.#pages.path
  }

  /**
   * Takes the next rows, `count` of them unless the column ends before.
   *
   * @throws Error where the pages are damaged or cut
   */
  async take(count: number): Promise<unknown[]> {
    while (this.#complete < count && !this.#pages.ended) await this.#pages.appendRows(this.#rows)
    const rows = this.#rows.slice(this.#taken, this.#taken + count)
    this.#taken += rows.length
    if (this.#taken * 2 > this.#rows.length) {
      this.#rows.splice(0, this.#taken)
      this.#taken = 0
    }
    return rows
  }

  get #complete(): number {
    const mayGoOn = this.#repeated && !this.#pages.ended ? 1 : 0
    return this.#rows.length - this.#taken - mayGoOn
  }
}
