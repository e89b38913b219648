import type { Context } from '../../cli/command.ts'
import type { ValueRange } from '../../core/field.ts'
import type { JsonScanner } from '../../core/json-scan.ts'
import { LineJudge } from '../../core/line-judge.ts'
import { problemText } from '../../core/problem-text.ts'
import type { LineBlock } from '../../streams/line-blocks.ts'
import { contentOf, RECORD_POLICY } from '../record-lines.ts'

/** Reads lines as objects, and names those that cannot be used. */
export class ObjectLines {
  invalid = 0
  #context: Context
  #what: string
  #use: (scanner: JsonScanner, bytes: Buffer, range: ValueRange) => boolean
  #judge = new LineJudge(RECORD_POLICY)

  /**
   * @param what is said of an object that `use` does not take
   * @param use takes the object that the scanner has just read
   */
  constructor(
    context: Context,
    what: string,
    use: (scanner: JsonScanner, bytes: Buffer, range: ValueRange) => boolean,
  ) {
    this.#context = context
    this.#what = what
    this.#use = use
  }

  async file(name: string, blocks: AsyncIterable<LineBlock>): Promise<void> {
    let line = 1
    for await (const block of blocks) line = this.#block(name, block, line)
  }

  #block(file: string, { bytes, end, cut }: LineBlock, firstLine: number): number {
    const judge = this.#judge
    let line = firstLine
    judge.begin(bytes, end)
    for (let at = 0; at < end; line++) {
      const start = at
      const clean = judge.line(start)
      at = judge.terminated ? judge.end + 1 : judge.end
      const range = clean ? { start, end: judge.end } : contentOf(judge, bytes, start)
      if (range === undefined) {
        if (!cut || judge.terminated) this.#bad(bytes, start, file, line)
        continue
      }
      while (bytes[range.start]! <= 0x20) range.start++
      while (bytes[range.end - 1]! <= 0x20) range.end--
      const used = bytes[range.start] === 0x7b && this.#use(judge.scanner, bytes, range)
      if (used) continue
      this.invalid++
      this.#context.report.error(this.#what, 'not-a-record', { file, line })
    }
    return line
  }

  #bad(bytes: Buffer, start: number, file: string, line: number): void {
    const { problems, end } = this.#judge
    const { code, at } = problems[0]!
    if (code === 'blank') return
    this.invalid++
    const place = { file, line, column: at - start + 1 }
    this.#context.report.error(problemText(code, bytes, at, end), code, place)
  }
}
