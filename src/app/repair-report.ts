import { counted } from '../core/quantity.ts'
import type { RepairCounts } from '../core/repair-counts.ts'

/** The counts of all files together, as --stats writes them. */
export type Totals = Record<string, number>

const COUNTS: Record<keyof RepairCounts, string> = {
  lines: 'lines',
  kept: 'kept',
  unframed: 'unframed',
  split: 'split',
  framing: 'framing',
  torn: 'torn',
  removed: 'removed',
  records: 'records',
  pieces: 'pieces',
  removedBytes: 'removed_bytes',
  framingBytes: 'framing_bytes',
  addedNewlines: 'added_newlines',
  finalNewlines: 'final_newlines',
}

/** No file so far; `refused` ones are no damaged JSONL, and their lines are not counted. */
export function noTotals(): Totals {
  const names = ['files', 'refused', ...Object.values(COUNTS)]
  return Object.fromEntries(names.map((name) => [name, 0]))
}

/** Adds one file's counts. */
export function addCounts(totals: Totals, counts: RepairCounts): void {
  totals.files!++
  for (const [count, name] of Object.entries(COUNTS)) {
    totals[name]! += counts[count as keyof RepairCounts]
  }
}

/** Whether a file needs no repair. */
export function isClean(counts: RepairCounts): boolean {
  return counts.kept === counts.lines && counts.addedNewlines === 0
}

/** One file's counts as a sentence. */
export function summary(counts: RepairCounts, check: boolean): string {
  const records = counted(counts.records, 'record')
  if (isClean(counts)) return `${records}, nothing to repair`
  const would = check ? 'would be ' : ''
  const parts = [`${records} ${check ? 'to keep' : 'kept'}`]
  if (counts.pieces > 0) {
    const bytes = counted(counts.removedBytes, 'byte')
    parts.push(`${counted(counts.pieces, 'piece')} (${bytes}) ${would}removed`)
  }
  if (counts.split > 0) parts.push(`${counted(counts.split, 'line')} ${would}split`)
  if (counts.framingBytes > 0) {
    const bytes = counted(counts.framingBytes, 'byte')
    parts.push(`${bytes} of blanks, NULs and byte order marks ${would}dropped`)
  }
  if (counts.finalNewlines > 0) parts.push(`final newline ${would}added`)
  return parts.join(', ')
}
