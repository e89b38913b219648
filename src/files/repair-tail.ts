import type { FileHandle } from 'node:fs/promises'
import { open } from 'node:fs/promises'
import { FILE_SENTENCES, fileKind } from '../core/file-kind.ts'
import { NearRecord } from '../core/glue-near.ts'
import { grammarProblem } from '../core/json-problem.ts'
import { JsonScanner, PADDING } from '../core/json-scan.ts'
import { type LineParts, LineSplitter } from '../core/repair-line.ts'
import { salvage } from '../core/repair-salvage.ts'
import { EXIT, ioError, ToolError } from '../core/tool-error.ts'
import { BackwardLines } from './backward-lines.ts'
import { compressedRefusal, linkTarget } from './in-place.ts'
import { compressionOf } from './input.ts'
import { RemovedFile } from './removed-file.ts'

const NEWLINE = Buffer.from('\n')
const BOM = Buffer.from('\ufeff')

/** So much of a file's beginning tells what it is. */
const HEAD = 64 * 1024

/** Valid records before the last line that are evidence, and how far back they are looked for. */
const NEAR = 8
const NEAR_LINES = 64
const NEAR_BYTES = 4 * 1024 * 1024

/** Lines are counted for a removed piece where so much stands before it; else its line is null. */
const COUNTED = 16 * 1024 * 1024

export interface TailOptions {
  /** Where a torn record goes; by default `FILE.removed.jsonl` beside the file itself. */
  removedPath?: string | undefined
  /** Where what can be salvaged of a torn record goes. */
  salvagedPath?: string | undefined
  /** Only tell what would be done. */
  dryRun?: boolean
}

/** What was done to the end of a file, or would be. */
export interface TailRepair {
  changed: boolean
  /** Bytes of a torn record that were taken out, and where they began. */
  removedBytes: number
  removedAt: number
  removedLine: number | null
  /** The file they are in. */
  removedPath: string
  /** NULs and white space that were dropped. */
  framingBytes: number
  addedNewline: boolean
  /** The last line holds several records: the file was left as it is, for repair-truncated -i. */
  needsSplit: boolean
  /** The last line has its newline, and is no record: it was left for repair-truncated -i too. */
  bad: BadLine | undefined
}

/** A line of a file by its offset, and what is wrong with it. */
interface BadLine {
  start: number
  code: string
}

/** What is to be done: the file ends at `length`, with a newline put there or not. */
interface Plan {
  length: number
  newline: boolean
  torn: { start: number; bytes: Buffer; code: string; line: number | null } | undefined
  needsSplit: boolean
  bad: BadLine | undefined
}

/**
 * Cuts a torn record off the end of a file, or completes the last record with its newline, in place
 * and in time that does not depend on the file's size. The torn record is on the disk elsewhere
 * before it is cut off.
 *
 * @throws ToolError where the file cannot be read or written, is compressed or no JSONL, or another
 *   process writes to it
 */
export async function repairTail(path: string, options: TailOptions = {}): Promise<TailRepair> {
  const dryRun = options.dryRun === true
  try {
    const target = await linkTarget(path)
    const handle = await open(target, dryRun ? 'r' : 'r+')
    try {
      const before = await handle.stat()
      if (!before.isFile()) throw refusal(path, 'not-a-file', 'is no regular file', EXIT.trouble)
      const plan = await makePlan(handle, path, before.size)
      const removedPath = options.removedPath ?? `${target}.removed.jsonl`
      const changed = plan.length !== before.size || plan.newline
      if (changed && !dryRun) {
        const now = await handle.stat()
        if (now.size !== before.size || now.mtimeMs !== before.mtimeMs) {
          throw refusal(path, 'changed', 'another process is writing to it: left as it is', 2)
        }
        const removed = new RemovedFile(removedPath, before.mode)
        await carryOut(handle, path, plan, removed, options.salvagedPath)
      }
      const removedBytes = plan.torn?.bytes.length ?? 0
      return {
        changed,
        removedBytes,
        removedAt: plan.torn?.start ?? -1,
        removedLine: plan.torn?.line ?? null,
        removedPath,
        framingBytes: before.size - plan.length - removedBytes,
        addedNewline: plan.newline,
        needsSplit: plan.needsSplit,
        bad: plan.bad,
      }
    } finally {
      await handle.close()
    }
  } catch (error) {
    throw ioError(error, path, 'repair')
  }
}

async function makePlan(handle: FileHandle, path: string, size: number): Promise<Plan> {
  await refuseOtherKinds(handle, path, size)
  const asItIs: Plan = {
    length: size,
    newline: false,
    torn: undefined,
    needsSplit: false,
    bad: undefined,
  }
  if (size === 0) return asItIs
  const lines = new BackwardLines(handle, size)
  const contentEnd = await lines.beforeNuls(size)
  if (contentEnd === 0) return { ...asItIs, length: 0 }
  const { lineStart, contentStart } = await lines.lineBefore(contentEnd)
  if (lineStart === contentEnd) {
    const bad = await badLine(handle, lines, contentEnd - 1)
    return { ...asItIs, length: contentEnd, bad }
  }
  const bytes = await readRange(handle, contentStart, contentEnd)
  const near = lineStart < 0 ? [] : await nearRecords(handle, lines, lineStart)
  if (near === undefined) {
    const message = 'no line before the last one is JSON: look at it with --check'
    throw refusal(path, 'no-record', message, EXIT.data)
  }
  const end = contentEnd - contentStart
  const parts = new LineSplitter().split(bytes, 0, end, false, near)!
  const { records, torn } = parts
  if (records.length > 2 || parts.glued) return { ...asItIs, needsSplit: true }
  const [, recordEnd] = records
  // Behind a gap of NULs whose beginning was not looked for, a newline makes a blank line of them.
  const newline = recordEnd !== undefined || lineStart < 0
  const length = newline ? contentStart + (recordEnd ?? 0) : lineStart
  const plan = { ...asItIs, length, newline }
  if (torn === undefined) return plan
  return {
    ...plan,
    torn: {
      start: contentStart + torn.start,
      bytes: bytes.subarray(torn.start, torn.end),
      code: tornCode(bytes, parts),
      line: lineStart < 0 ? null : await lineNumber(handle, lineStart),
    },
  }
}

function tornCode(bytes: Buffer, { torn }: LineParts): string {
  return grammarProblem(bytes, torn!.start, torn!.end, false)?.code ?? 'truncated'
}

async function carryOut(
  handle: FileHandle,
  path: string,
  { torn, length, newline }: Plan,
  removed: RemovedFile,
  salvagedPath: string | undefined,
): Promise<void> {
  if (torn !== undefined) {
    const { start: offset, bytes, code, line } = torn
    await append(removed, (to) => to.add({ file: path, line, offset, code, bytes }))
    const rescued = salvagedPath === undefined ? undefined : salvage(bytes)
    if (rescued !== undefined) {
      await append(new RemovedFile(salvagedPath!), (to) => to.addLines([rescued]))
    }
  }
  if (newline) await handle.write(NEWLINE, 0, 1, length)
  await handle.truncate(newline ? length + 1 : length)
  await handle.sync()
}

async function append(file: RemovedFile, add: (file: RemovedFile) => Promise<void>): Promise<void> {
  try {
    await add(file)
    await file.sync()
  } catch (error) {
    await file.rollback()
    throw error
  } finally {
    await file.close()
  }
}

async function refuseOtherKinds(handle: FileHandle, path: string, size: number): Promise<void> {
  const head = await readRange(handle, 0, Math.min(size, HEAD))
  const end = head.length - PADDING
  const compression = compressionOf(head.subarray(0, end))
  if (compression !== undefined) throw compressedRefusal(path, compression)
  const lastLineFeed = head.lastIndexOf(0x0a, end - 1)
  const kind = fileKind(head, size > end ? lastLineFeed + 1 : end)
  if (kind !== undefined && kind !== 'undecided') {
    throw refusal(path, kind, FILE_SENTENCES[kind], EXIT.data)
  }
}

/** The last valid records before `end`; undefined where there are lines, but none is JSON. */
async function nearRecords(
  handle: FileHandle,
  lines: BackwardLines,
  end: number,
): Promise<NearRecord[] | undefined> {
  const scanner = new JsonScanner()
  const found: NearRecord[] = []
  let sawBad = false
  let stop = end
  for (let count = 0; count < NEAR_LINES && stop > 0 && found.length < NEAR; count++) {
    const floor = end - NEAR_BYTES
    const { lineStart, contentStart } = await lines.lineBefore(stop - 1, floor)
    if (contentStart < floor) break
    const bytes = await readRange(handle, contentStart, stop - 1)
    const length = stop - 1 - contentStart
    scanner.use(bytes)
    const isBlank = bytes.subarray(0, length).every((byte) => byte <= 0x20)
    if (scanner.scan(0, length)) found.unshift(NearRecord.copyOf(bytes, 0, length))
    else if (!isBlank) sawBad = true
    stop = lineStart
  }
  return found.length === 0 && sawBad ? undefined : found
}

/** The line whose line feed is at `end` where it is no record, as far as that is seen from close by. */
async function badLine(
  handle: FileHandle,
  lines: BackwardLines,
  end: number,
): Promise<BadLine | undefined> {
  const floor = end - NEAR_BYTES
  const { lineStart, contentStart } = await lines.lineBefore(end, floor)
  if (lineStart < 0 || contentStart < floor) return undefined
  const bytes = await readRange(handle, contentStart, end)
  const from = contentStart === 0 && bytes.indexOf(BOM) === 0 ? BOM.length : 0
  const length = end - contentStart
  if (bytes.subarray(from, length).every((byte) => byte <= 0x20)) return undefined
  const scanner = new JsonScanner()
  scanner.use(bytes)
  if (scanner.scan(from, length)) return undefined
  const code = grammarProblem(bytes, from, length, false)?.code ?? 'truncated'
  return { start: contentStart, code }
}

async function lineNumber(handle: FileHandle, lineStart: number): Promise<number | null> {
  if (lineStart > COUNTED) return null
  const before = await readRange(handle, 0, lineStart)
  let line = 1
  for (
    let at = before.indexOf(0x0a);
    at >= 0 && at < lineStart;
    at = before.indexOf(0x0a, at + 1)
  ) {
    line++
  }
  return line
}

/** The bytes from `start` to `end`, with a line feed and the scanner's padding behind them. */
async function readRange(handle: FileHandle, start: number, end: number): Promise<Buffer> {
  const bytes = Buffer.alloc(end - start + PADDING)
  let filled = 0
  while (filled < end - start) {
    const { bytesRead } = await handle.read(bytes, filled, end - start - filled, start + filled)
    if (bytesRead === 0) throw new Error('the file became shorter while it was read')
    filled += bytesRead
  }
  bytes[end - start] = 0x0a
  return bytes
}

function refusal(file: string, code: string, message: string, exitCode: number): ToolError {
  return new ToolError(code, message, { exitCode: exitCode as 1 | 2, place: { file } })
}
