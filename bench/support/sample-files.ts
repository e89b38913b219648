import { closeSync, openSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { conversations, largeRecords, questions, shortRecord } from './records.ts'

/** A file that a benchmark reads. */
export interface SampleFile {
  path: string
  bytes: number
  records: number
}

const WRITE_SIZE = 1024 * 1024

/** Makes files when they are first asked for, and keeps them for the other benchmarks of the run. */
export class SampleFiles {
  #folder: string
  #made = new Map<string, SampleFile>()

  constructor(folder: string) {
    this.#folder = folder
  }

  /** Answers of about 5.6 kB. */
  large(bytes: number): SampleFile {
    return this.#file(`large-${bytes}.jsonl`, bytes, largeRecords(1))
  }

  /** Records of 46 bytes. */
  short(bytes: number): SampleFile {
    return this.#file(`short-${bytes}.jsonl`, bytes, shortRecord)
  }

  /** Questions of about `length` bytes each. */
  questions(bytes: number, length: number): SampleFile {
    return this.#file(`questions-${length}-${bytes}.jsonl`, bytes, questions(length, 2))
  }

  /** ShareGPT conversations of about 520 bytes, a question and its answer. */
  conversations(bytes: number): SampleFile {
    return this.#file(`conversations-${bytes}.jsonl`, bytes, conversations(4))
  }

  empty(): SampleFile {
    return this.#file('empty.jsonl', 0, shortRecord)
  }

  #file(name: string, bytes: number, record: (id: number) => string): SampleFile {
    let file = this.#made.get(name)
    if (file === undefined) {
      file = write(join(this.#folder, name), bytes, record)
      this.#made.set(name, file)
    }
    return file
  }
}

function write(path: string, bytes: number, record: (id: number) => string): SampleFile {
  const fd = openSync(path, 'w')
  let written = 0
  let records = 0
  while (written < bytes) {
    const batch: string[] = []
    for (let size = 0; size < WRITE_SIZE && written + size < bytes; records++) {
      const line = record(records)
      size += line.length
      batch.push(line)
    }
    const block = Buffer.from(batch.join(''))
    for (let at = 0; at < block.length; ) at += writeSync(fd, block, at)
    written += block.length
  }
  closeSync(fd)
  return { path, bytes: statSync(path).size, records }
}
