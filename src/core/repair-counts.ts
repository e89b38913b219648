/** Counts of one file. `lines` is the sum of kept, unframed, split, framing, torn and removed. */
export interface RepairCounts {
  lines: number
  /** Lines kept byte for byte. */
  kept: number
  /** Lines kept without the NULs or byte order mark around their record. */
  unframed: number
  /** Lines that became several, or whose torn beginning was taken off. */
  split: number
  /** Lines without a record: blank, NULs, a byte order mark. */
  framing: number
  /** A last line cut off. */
  torn: number
  /** Lines taken out as a whole. */
  removed: number
  /** Records in the result. */
  records: number
  pieces: number
  removedBytes: number
  framingBytes: number
  /** Line feeds put between the records of a line, or behind the last record. */
  addedNewlines: number
  /** Those behind the last record. */
  finalNewlines: number
}

export function noCounts(): RepairCounts {
  return {
    lines: 0,
    kept: 0,
    unframed: 0,
    split: 0,
    framing: 0,
    torn: 0,
    removed: 0,
    records: 0,
    pieces: 0,
    removedBytes: 0,
    framingBytes: 0,
    addedNewlines: 0,
    finalNewlines: 0,
  }
}
