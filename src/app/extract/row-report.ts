import type { Context } from '../../cli/command.ts'
import { lineKey } from '../../core/key.ts'
import type { RemovedPiece } from '../../core/removed-piece.ts'
import { type Shard, shardOfText } from '../../core/shard.ts'
import { RemovedFile } from '../../files/removed-file.ts'
import type { RowPlace } from './row-handler.ts'

/** Rows of one file that are named for each reason, unless --verbose asks for all of them. */
const NAMED = 100

/** Names the rows that cannot be used, counts them by reason, and keeps them in --rejects. */
export class RowReport {
  /** Rejected rows by reason. */
  readonly counts: Record<string, number> = {}
  /** Problems that are no row's. */
  fileProblems = 0
  /** Rows that cannot be used and that the tasks of other shards name. */
  otherShards = 0
  #context: Context
  #rejects: RemovedFile | undefined
  #pieces: RemovedPiece[] = []
  #file = ''
  #named: Record<string, number> = {}
  #shard: Shard | undefined

  constructor(context: Context, rejects: string | undefined, shard: Shard | undefined) {
    this.#context = context
    this.#shard = shard
    this.#rejects = rejects === undefined ? undefined : new RemovedFile(rejects)
  }

  /** @param bytes the row, kept until the next `settle`; undefined where there is none to keep */
  reject(
    code: string,
    message: string,
    place: RowPlace,
    bytes: Buffer | undefined,
    rows = 1,
  ): void {
    if (bytes !== undefined && !this.#isOwn(bytes)) {
      this.otherShards += rows
      return
    }
    this.counts[code] = (this.counts[code] ?? 0) + rows
    const { file, row, offset } = place
    this.#name(code, message, file, row)
    if (this.#rejects !== undefined && bytes !== undefined) {
      this.#pieces.push({ file, line: row, offset, code, bytes })
    }
  }

  /** @param row the row that it comes before, where it has such a place */
  fileProblem(code: string, message: string, file: string, row?: number): void {
    this.fileProblems++
    if (row === undefined) this.#context.report.error(message, code, { file })
    else this.#name(code, message, file, row)
  }

  /** Writes what is to be kept. */
  async settle(): Promise<void> {
    for (const piece of this.#pieces.splice(0)) await this.#rejects?.add(piece)
  }

  /** Tells how many rows were not named. */
  endFile(): void {
    this.#begin('')
  }

  async close(): Promise<void> {
    await this.settle()
    await this.#rejects?.close()
  }

  get rejected(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count, 0)
  }

  #name(code: string, message: string, file: string, row: number): void {
    if (this.#file !== file) this.#begin(file)
    const named = (this.#named[code] ?? 0) + 1
    this.#named[code] = named
    const { report } = this.#context
    if (named <= NAMED || report.verbose) report.error(message, code, { file, line: row })
  }

  #isOwn(row: Buffer): boolean {
    if (this.#shard === undefined) return true
    return shardOfText(lineKey(row, 0, row.length), this.#shard.count) === this.#shard.index
  }

  #begin(file: string): void {
    const where =
      this.#rejects === undefined ? '--rejects FILE keeps them' : `in ${this.#rejects.path}`
    for (const [code, count] of Object.entries(this.#named)) {
      if (count <= NAMED || this.#context.report.verbose) continue
      // What costs no row is kept nowhere.
      const kept = this.counts[code] === undefined ? '' : `${where}; `
      const message = `${count - NAMED} more such rows (${kept}--verbose names them)`
      this.#context.report.error(message, code, { file: this.#file })
    }
    this.#named = {}
    this.#file = file
  }
}
