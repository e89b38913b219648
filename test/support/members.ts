import { closeSync, openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ByteReader } from '../../src/core/byte-reader.ts'
import {
  FdReader,
  FileReader,
  KeptReader,
  type RereadableSource,
} from '../../src/files/byte-reader.ts'
import type { MemberKind } from '../../src/files/member.ts'
import { MemberReader } from '../../src/files/member-reader.ts'
import { newFolder } from './run.ts'

/** All that could be read, and the error at its end. */
export interface Everything {
  bytes: Buffer
  error: string
}

/** Reads packed bytes as from a pipe that gives at most `size` at a time. */
export function fromPipe(packed: Buffer, kind: MemberKind, size = 65_536): Promise<Everything> {
  let at = 0
  const pipe: ByteReader = {
    read(into, offset, length) {
      const count = packed.copy(into, offset, at, at + Math.min(length, size))
      at += count
      return Promise.resolve(count)
    },
  }
  return everything(new KeptReader(pipe), kind)
}

/** Reads packed bytes from a file, at most `size` at a time. */
export async function fromFile(packed: Buffer, kind: MemberKind, size = 65_536) {
  const path = join(newFolder(), 'packed')
  writeFileSync(path, packed)
  const fd = openSync(path, 'r')
  const reader = (offset: number): ByteReader => {
    const file = new FdReader(fd, offset)
    return { read: (into, at, length) => file.read(into, at, Math.min(length, size)) }
  }
  try {
    return await everything(new FileReader(reader(0), reader), kind)
  } finally {
    closeSync(fd)
  }
}

async function everything(source: RereadableSource, kind: MemberKind): Promise<Everything> {
  const reader = new MemberReader(source, kind, 'packed')
  const parts: Buffer[] = []
  for (;;) {
    const into = Buffer.alloc(10_000)
    try {
      const count = await reader.read(into, 0, into.length)
      if (count === 0) return { bytes: Buffer.concat(parts), error: '' }
      parts.push(into.subarray(0, count))
    } catch (error) {
      return { bytes: Buffer.concat(parts), error: (error as Error).message }
    }
  }
}
