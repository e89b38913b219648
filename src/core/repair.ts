import { FILE_SENTENCES, isConflictMarker } from './file-kind.ts'
import { NearRecord, NearRecords } from './glue-near.ts'
import { HeldLines, type RepairLine as Line } from './held-lines.ts'
import { grammarProblem } from './json-problem.ts'
import { LineJudge, type LinePolicy } from './line-judge.ts'
import { problemText } from './problem-text.ts'
import { noCounts } from './repair-counts.ts'
import { type LineParts, LineSplitter } from './repair-line.ts'
import type { Removal, RepairTarget } from './repair-target.ts'
import { EXIT, ToolError } from './tool-error.ts'

/** What a repair lets stand: the line is JSON, whatever readers make of it. */
export const REPAIR_ALLOWS = ['duplicate-key', 'lone-surrogate', 'too-deep'] as const

/** Which lines are kept as they are. */
export const REPAIR_POLICY: LinePolicy = {
  maxDepth: Number.POSITIVE_INFINITY,
  allow: new Set(REPAIR_ALLOWS),
}

/** A block of lines as streams/line-blocks.ts gives it. */
export interface RepairBlock {
  bytes: Buffer
  end: number
  terminated: boolean
  cut: boolean
  offset: number
}

/** Repairs one file, block by block. Undamaged lines cost what judging them costs. */
export class Repairer {
  readonly counts = noCounts()
  /** The worst exit code that what was removed calls for. */
  exitCode: number = EXIT.ok

  #file: string
  #target: RepairTarget
  #cutCode: string
  #judge = new LineJudge(REPAIR_POLICY)
  #splitter = new LineSplitter()
  #near = new NearRecords()
  /** No valid record has come yet. */
  #waiting = true
  /** Bad lines that the first valid record may give evidence for. */
  #held = new HeldLines()
  #badLine = false

  /**
   * @param file the file's name, for the removed pieces
   * @param cutCode the code of a last line that ends because the compressed data does
   */
  constructor(file: string, target: RepairTarget, cutCode = 'gzip-truncated') {
    this.#file = file
    this.#target = target
    this.#cutCode = cutCode
  }

  /** A valid record has come: what becomes of each line so far is decided. */
  get hasRecord(): boolean {
    return !this.#waiting
  }

  /**
   * Takes a block of lines.
   *
   * @param cleanLines how many lines it has, where all of them are known to be clean
   * @throws ToolError where the file is refused
   */
  block(block: RepairBlock, cleanLines?: number): void {
    if (cleanLines !== undefined) {
      if (this.#waiting) this.#firstLine(block)
      this.#keepRun(block, 0, block.end, cleanLines)
      this.counts.lines += cleanLines
    } else this.#lines(block)
  }

  /** The first line of a block of clean ones is the first valid record. */
  #firstLine({ bytes, end }: RepairBlock): void {
    this.#judge.begin(bytes, end)
    this.#judge.line(0)
    this.#firstRecord(bytes, 0, this.#judge.end)
  }

  #lines(block: RepairBlock): void {
    const { bytes, end, offset } = block
    const judge = this.#judge
    this.#near.settle()
    const firstLine = this.counts.lines + 1
    let number = firstLine
    let keptFrom = 0
    let keptFirst = firstLine
    judge.begin(bytes, end)
    for (let at = 0; at < end; number++) {
      const start = at
      const clean = judge.line(start)
      at = judge.terminated ? judge.end + 1 : judge.end
      if (clean) {
        if (this.#waiting) this.#firstRecord(bytes, start, judge.end)
        continue
      }
      this.#keepRun(block, keptFrom, start, number - keptFirst)
      keptFrom = at
      keptFirst = number + 1
      const { terminated } = judge
      const reason = this.#reason(block, start)
      this.counts.lines = number
      this.#repair({
        bytes,
        start,
        end: judge.end,
        terminated,
        offset: offset + start,
        number,
        ...reason,
      })
      if (block.cut && !terminated) this.exitCode = EXIT.data
    }
    this.#keepRun(block, keptFrom, end, number - keptFirst)
    this.counts.lines = number - 1
    if (keptFrom < end && !judge.terminated) this.#addNewline(true)
  }

  /**
   * Ends the file.
   *
   * @throws ToolError where no line of it is JSON
   */
  finish(): void {
    if (!this.#waiting) return
    if (this.#badLine || this.#held.any) {
      throw new ToolError('no-record', 'no line is a whole JSON value: this is no damaged JSONL', {
        exitCode: EXIT.data,
        place: { file: this.#file },
      })
    }
  }

  #keepRun({ bytes, offset }: RepairBlock, start: number, end: number, lines: number): void {
    if (start === end) return
    this.#target.keep(bytes, start, end, offset + start)
    this.#near.addRun(bytes, start, end)
    this.counts.kept += lines
    this.counts.records += lines
  }

  #reason(
    { bytes, cut, offset }: RepairBlock,
    start: number,
  ): Pick<Line, 'code' | 'message' | 'column'> {
    const { end, terminated, problems } = this.#judge
    if (isConflictMarker(bytes, start, end)) {
      const message = FILE_SENTENCES['conflict-marker']
      if (this.#target.mayRefuse(offset + start)) {
        throw new ToolError('conflict-marker', message, {
          exitCode: EXIT.data,
          place: { file: this.#file },
        })
      }
      return { code: 'conflict-marker', message, column: 1 }
    }
    if (cut && !terminated) {
      const message = 'the compressed data ends inside the line'
      return { code: this.#cutCode, message, column: end - start + 1 }
    }
    const problem = problems.find(({ code }) => code !== 'bom') ?? problems[0]!
    return {
      code: problem.code,
      message: problemText(problem.code, bytes, problem.at, end),
      column: problem.at - start + 1,
    }
  }

  /** Deals with a line that is not clean, or holds it until there is evidence. */
  #repair(line: Line): void {
    const { bytes, start, end, terminated } = line
    const isMarker = line.code === 'conflict-marker'
    const parts = isMarker
      ? undefined
      : this.#splitter.split(bytes, start, end, terminated, this.#near.list)
    if (parts !== undefined) {
      if (this.#waiting && parts.records.length > 0) {
        this.#firstRecord(bytes, parts.records[0]!, parts.records[1]!)
      }
      this.#emit(line, parts)
    } else if (this.#waiting && !this.#held.gaveUp) {
      for (const held of this.#held.add(line)) this.#removeLine(held)
    } else {
      this.#removeLine(line)
    }
  }

  /** The first valid record has come: it is the evidence for what was held. */
  #firstRecord(bytes: Buffer, start: number, end: number): void {
    this.#waiting = false
    const near = [NearRecord.copyOf(bytes, start, end)]
    for (const line of this.#held.take()) {
      const isMarker = line.code === 'conflict-marker'
      const parts = isMarker
        ? undefined
        : this.#splitter.split(line.bytes, line.start, line.end, line.terminated, near)
      if (parts === undefined) this.#removeLine(line)
      else this.#emit(line, parts)
    }
  }

  #emit(line: Line, { records, before, torn, glued, tail }: LineParts): void {
    const { bytes, start, end, terminated, offset } = line
    const { counts } = this
    let kept = 0
    const keep = (from: number, to: number): void => {
      for (let index = from; index < to; index++) {
        const recordStart = records[index * 2]!
        const recordEnd = records[index * 2 + 1]!
        kept += recordEnd - recordStart
        this.#target.keep(bytes, recordStart, recordEnd, offset + recordStart - start)
        const isLast = index === records.length / 2 - 1
        if (isLast && terminated) this.#target.keep(bytes, end, end + 1, offset + end - start)
        else this.#addNewline(isLast)
      }
    }
    keep(0, before)
    if (torn !== undefined) this.#removeTorn(line, torn, glued)
    keep(before, records.length / 2)
    if (tail !== undefined) this.#removeTorn(line, tail, false)
    this.#near.addRanges(bytes, records)
    counts.records += records.length / 2
    counts.framingBytes += end - start - kept - lengthOf(torn) - lengthOf(tail)
    if (records.length === 0 && torn === undefined) {
      counts.framing++
      if (terminated) counts.framingBytes++
    } else if (torn !== undefined && !glued) counts.torn++
    else if (records.length === 2 && !glued) counts.unframed++
    else counts.split++
  }

  #removeTorn(line: Line, { start, end }: { start: number; end: number }, glued: boolean): void {
    const { bytes, offset, number } = line
    const isCut = line.code === this.#cutCode
    const code = grammarProblem(bytes, start, end, false)?.code ?? 'truncated'
    const message = glued
      ? 'a torn record stands before a whole one on its line'
      : isCut
        ? line.message
        : 'the last record is torn'
    this.#remove({
      kind: glued ? 'part' : 'tail',
      file: this.#file,
      line: number,
      column: start - line.start + 1,
      offset: offset + start - line.start,
      code: isCut ? line.code : code,
      message,
      bytes: bytes.subarray(start, end),
    })
    if (glued) this.exitCode = EXIT.data
  }

  #removeLine(line: Line): void {
    const { bytes, start, end, terminated, offset, number, column, code, message } = line
    this.#badLine = true
    this.exitCode = EXIT.data
    this.counts.removed++
    this.#remove({
      kind: 'line',
      file: this.#file,
      line: number,
      column,
      offset,
      code,
      message,
      bytes: bytes.subarray(start, terminated ? end + 1 : end),
    })
  }

  #remove(removal: Removal): void {
    this.counts.pieces++
    this.counts.removedBytes += removal.bytes.length
    this.#target.remove(removal)
  }

  #addNewline(isFinal: boolean): void {
    this.counts.addedNewlines++
    if (isFinal) this.counts.finalNewlines++
    this.#target.addNewline()
  }
}

function lengthOf(range: { start: number; end: number } | undefined): number {
  return range === undefined ? 0 : range.end - range.start
}
