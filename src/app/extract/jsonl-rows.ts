import type { ByteReader } from '../../core/byte-reader.ts'
import type { ValueRange } from '../../core/field.ts'
import { FILE_SENTENCES, fileKind, isConflictMarker, kindIsClear } from '../../core/file-kind.ts'
import { LineJudge } from '../../core/line-judge.ts'
import { problemText } from '../../core/problem-text.ts'
import { ToolError } from '../../core/tool-error.ts'
import { type BlockOptions, type LineBlock, lineBlocks } from '../../streams/line-blocks.ts'
import { UnreadLines } from '../file-shape.ts'
import { contentOf, RECORD_POLICY } from '../record-lines.ts'
import type { RowHandler, RowPlace } from './row-handler.ts'

/**
 * Gives the lines of JSONL as rows.
 *
 * @throws ToolError where the file as a whole is something else, such as one pretty-printed value
 */
export async function jsonlRows(
  reader: ByteReader,
  file: string,
  handler: RowHandler,
  reading: BlockOptions,
): Promise<void> {
  const judge = new LineJudge(RECORD_POLICY)
  const unread = new UnreadLines()
  let line = 1
  const blocks = lineBlocks(reader, {
    ...reading,
    headComplete: kindIsClear,
  })
  for await (const block of blocks) {
    const kind = block.offset === 0 ? fileKind(block.bytes, block.end) : undefined
    if (kind !== undefined && kind !== 'undecided') {
      throw new ToolError(kind, FILE_SENTENCES[kind], { exitCode: 1, place: { file } })
    }
    line = blockRows({ judge, unread, handler }, block, file, line)
    await handler.settle()
    if (handler.done) return
  }
  unread.end(file)
}

interface Reading {
  judge: LineJudge
  unread: UnreadLines
  handler: RowHandler
}

function blockRows(reading: Reading, block: LineBlock, file: string, firstLine: number): number {
  const { judge, unread, handler } = reading
  const { bytes, end } = block
  let row = firstLine
  judge.begin(bytes, end)
  for (let at = 0; at < end && !handler.done; row++) {
    const start = at
    const clean = judge.line(start)
    at = judge.terminated ? judge.end + 1 : judge.end
    const range = clean ? { start, end: judge.end } : contentOf(judge, bytes, start)
    const place = { file, row, offset: block.offset + start }
    if (range !== undefined) {
      unread.release()
      handler.row(judge.scanner, bytes, trimmed(bytes, range), place)
    }
    // The damage of the compression is the problem, and is reported as one.
    else if (!block.cut || judge.terminated) badLine(reading, bytes, { start, end: at }, place)
  }
  return row
}

function badLine(
  { judge, unread, handler }: Reading,
  bytes: Buffer,
  range: ValueRange,
  place: RowPlace,
): void {
  const { code, at } = judge.problems[0]!
  if (code === 'blank') return handler.blank()
  if (isConflictMarker(bytes, range.start, judge.end)) {
    unread.release()
    return handler.broken('conflict-marker', FILE_SENTENCES['conflict-marker'], bytes, range, place)
  }
  const text = `${problemText(code, bytes, at, judge.end)} (column ${at - range.start + 1})`
  unread.line(place.file, bytes, range, (line, within) =>
    handler.broken(code, text, line, within, place),
  )
}

/** The value begins behind the white space of its line. */
function trimmed(bytes: Buffer, range: ValueRange): ValueRange {
  let { start } = range
  while (bytes[start] === 0x20 || bytes[start] === 0x09 || bytes[start] === 0x0d) start++
  return { start, end: range.end }
}
