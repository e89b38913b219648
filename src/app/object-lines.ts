import type { Context } from '../cli/command.ts'
import type { ValueRange } from '../core/field.ts'
import { FILE_SENTENCES, fileKind } from '../core/file-kind.ts'
import type { JsonScanner } from '../core/json-scan.ts'
import { LineJudge } from '../core/line-judge.ts'
import { problemText } from '../core/problem-text.ts'
import { memberNames } from '../core/prompt-shape.ts'
import { type Place, ToolError } from '../core/tool-error.ts'
import type { LineBlock } from '../streams/line-blocks.ts'
import { FileShape, UnreadLines } from './file-shape.ts'
import { contentOf, eachLine, RECORD_POLICY } from './record-lines.ts'

/** Why an object of the right kind is of no use, and where in the bytes that is seen. */
export interface UselessObject {
  message: string
  code: string
  at: number
}

/** What is done with an object that the scanner has just read; false where it is none of its own. */
export type UseObject = (
  scanner: JsonScanner,
  bytes: Buffer,
  range: ValueRange,
) => boolean | UselessObject

/** Reads lines as objects, and names those that cannot be used. */
export class ObjectLines {
  invalid = 0
  blank = 0
  #context: Context
  #useless: { message: string; code: string }
  #use: UseObject
  #judge = new LineJudge(RECORD_POLICY)
  #shape: FileShape | undefined
  #unread = new UnreadLines()

  /**
   * @param useless what is said of an object that `use` does not take
   * @param noShape makes the error for a file in which it takes none; without it each is named
   */
  constructor(
    context: Context,
    useless: { message: string; code: string },
    use: UseObject,
    noShape?: (file: string, names: readonly string[]) => ToolError,
  ) {
    if (noShape !== undefined) {
      this.#shape = new FileShape((file, names, rows) => {
        this.invalid += rows
        return noShape(file, names)
      })
    }
    this.#context = context
    this.#useless = useless
    this.#use = use
  }

  /**
   * @param settle called after every block
   * @throws ToolError where the file as a whole is something else
   */
  async file(
    name: string,
    blocks: AsyncIterable<LineBlock>,
    settle?: () => Promise<void>,
  ): Promise<void> {
    let first = 1
    this.#shape?.begin()
    this.#unread = new UnreadLines()
    if (this.#shape === undefined) this.#unread.release()
    for await (const block of blocks) {
      const kind = block.offset === 0 ? fileKind(block.bytes, block.end) : undefined
      if (kind !== undefined && kind !== 'undecided') {
        throw new ToolError(kind, FILE_SENTENCES[kind], { place: { file: name } })
      }
      first = eachLine(this.#judge, block, first, (start, clean, line) =>
        this.#line(block, start, clean, { file: name, line }),
      )
      await settle?.()
    }
    this.#unread.end(name)
    this.#shape?.end(name)
  }

  #line({ bytes, cut }: LineBlock, start: number, clean: boolean, place: Place): void {
    const judge = this.#judge
    const range = clean ? { start, end: judge.end } : contentOf(judge, bytes, start)
    if (range === undefined) {
      if (!cut || judge.terminated) this.#bad(bytes, start, place)
      return
    }
    while (bytes[range.start]! <= 0x20) range.start++
    while (bytes[range.end - 1]! <= 0x20) range.end--
    this.#unread.release()
    const used = bytes[range.start] === 0x7b && this.#use(judge.scanner, bytes, range)
    const tell = (column = 1): void => {
      const { message, code } = typeof used === 'object' ? used : this.#useless
      this.invalid++
      this.#context.report.error(message, code, { ...place, column })
    }
    if (used !== false) {
      if (this.#shape?.isKnown === false) this.#shape.known()
      if (typeof used === 'object') tell(used.at - start + 1)
      return
    }
    if (this.#shape === undefined || this.#shape.isKnown) return tell()
    this.#shape.hold(place.file!, () => namesOf(judge.scanner, bytes, range), tell)
  }

  #bad(bytes: Buffer, start: number, place: Place): void {
    const { problems, end } = this.#judge
    const { code, at } = problems[0]!
    if (code === 'blank') {
      this.blank++
      return
    }
    const column = at - start + 1
    const text = problemText(code, bytes, at, end)
    this.#unread.line(place.file!, bytes, { start, end }, () => {
      this.invalid++
      this.#context.report.error(text, code, { ...place, column })
    })
  }
}

function namesOf(scanner: JsonScanner, bytes: Buffer, { start }: ValueRange): string[] | undefined {
  if (bytes[start] !== 0x7b) return undefined
  scanner.value(start)
  return memberNames(scanner, bytes)
}
