import type { ValueRange } from '../../core/field.ts'
import type { JsonScanner } from '../../core/json-scan.ts'

/** Where a row is: lines of JSONL, elements of an array, rows of Parquet, all counted from 1. */
export interface RowPlace {
  /** The file as messages call it. */
  file: string
  row: number
  /** Offset in the file; of Parquet, which has no rows in one place, the number of rows before. */
  offset: number
}

/** Takes the rows that a source reads, one after the other. */
export interface RowHandler {
  /** No more rows are wanted. */
  readonly done: boolean
  /** The file has a field that is looked for, whatever its rows hold. */
  shapeKnown(): void
  /** A row that is JSON; the scanner has just read it. */
  row(scanner: JsonScanner, bytes: Buffer, range: ValueRange, place: RowPlace): void
  /** A row that is none. */
  broken(code: string, message: string, bytes: Buffer, range: ValueRange, place: RowPlace): void
  /** Rows that are lost, from a place on. */
  lost(code: string, message: string, count: number, place: RowPlace): void
  /** What is wrong with a file, or before one of its rows, that costs no row. */
  fileProblem(code: string, message: string, file: string, row?: number): void
  /** A line that holds nothing. */
  blank(): void
  /** The rows so far were given: their bytes may change after this. */
  settle(): Promise<void>
}
