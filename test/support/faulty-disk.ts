import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, read, writeSync } from 'node:fs'
import { join } from 'node:path'
import { newFolder } from './run.ts'

export const ERRNO = { ENOENT: 2, EIO: 5, ENOSPC: 28, EROFS: 30, ENOSYS: 38, ESTALE: 116 } as const
export const EDQUOT = 122

/** What the disk is asked for, by its number in the protocol of FUSE. */
const OP = {
  lookup: 1,
  forget: 2,
  getattr: 3,
  setattr: 4,
  unlink: 10,
  open: 14,
  read: 15,
  write: 16,
  release: 18,
  fsync: 20,
  flush: 25,
  init: 26,
  create: 35,
  interrupt: 36,
  batchForget: 42,
} as const

const ROOT = 1n
const BUFFER = 1024 * 1024
const HEADER = 40
const SIZE_IS_SET = 8
const DIRECT_IO = 1

interface Node {
  id: bigint
  bytes: Buffer
  /** Bytes that a sync has made safe, from the front. */
  safe: number
}

/**
 * A file system of one folder that lives in this process and fails as a test says: the kernel hands
 * its errors to whoever writes there. The process that serves it must not look into it itself.
 */
export class FaultyDisk {
  readonly folder: string
  /** Errors of writes and of syncs; 0 is none. */
  faults = { write: 0, fsync: 0 }
  /** Whether a sync that fails drops what was written since the last one, as Linux does. */
  drops = false
  /** Bytes that are written before the fault of writes begins. */
  room = 0
  #fd: number
  #nodes = new Map<string, Node>()
  #ids = 2n

  /** Undefined where this user or this kernel cannot mount one. */
  static mount(): FaultyDisk | undefined {
    try {
      return new FaultyDisk()
    } catch {
      return undefined
    }
  }

  private constructor() {
    this.folder = join(newFolder(), 'disk')
    mkdirSync(this.folder)
    this.#fd = openSync('/dev/fuse', 'r+')
    const options = 'fd=3,rootmode=40000,user_id=0,group_id=0'
    const args = ['-i', '-t', 'fuse', '-o', options, 'faulty', this.folder]
    const stdio = ['ignore', 'ignore', 'ignore', this.#fd] as const
    if (spawnSync('mount', args, { stdio: [...stdio] }).status !== 0) {
      closeSync(this.#fd)
      throw new Error('mount failed')
    }
    this.#serve()
  }

  /** What a file holds. */
  content(name: string): string {
    return this.#nodes.get(name)?.bytes.toString() ?? ''
  }

  async unmount(): Promise<void> {
    await once(spawn('umount', ['-l', this.folder]), 'exit')
  }

  #serve(): void {
    const buffer = Buffer.alloc(BUFFER)
    read(this.#fd, buffer, 0, BUFFER, null, (error, length) => {
      if (error !== null && error.code !== 'EINTR' && error.code !== 'ENOENT') {
        return closeSync(this.#fd)
      }
      if (error === null) this.#handle(buffer.subarray(0, length))
      this.#serve()
    })
  }

  #handle(request: Buffer): void {
    const op = request.readUInt32LE(4)
    if (op === OP.forget || op === OP.batchForget || op === OP.interrupt) return
    const result = this.#answer(op, request.readBigUInt64LE(16), request.subarray(HEADER))
    const body = typeof result === 'number' ? Buffer.alloc(0) : result
    const head = Buffer.alloc(16)
    head.writeUInt32LE(16 + body.length, 0)
    head.writeInt32LE(typeof result === 'number' ? -result : 0, 4)
    request.copy(head, 8, 8, 16)
    try {
      writeSync(this.#fd, Buffer.concat([head, body]))
    } catch {
      // The asker was interrupted, or the disk is unmounted.
    }
  }

  /** The body of a reply, or an errno; 0 is an empty body. */
  #answer(op: number, id: bigint, body: Buffer): Buffer | number {
    const node = [...this.#nodes.values()].find((one) => one.id === id)
    if (op === OP.init) return initReply()
    if (op === OP.lookup || op === OP.create || op === OP.unlink) {
      return this.#byName(op, nameOf(op === OP.create ? body.subarray(16) : body))
    }
    if (op === OP.getattr) return attributesReply(node)
    if (op === OP.open) return opened()
    if (op === OP.release || op === OP.flush) return 0
    if (node === undefined) return ERRNO.ENOSYS
    if (op === OP.fsync) return this.#sync(node)
    if (op === OP.setattr) {
      if (body.readUInt32LE(0) & SIZE_IS_SET) resize(node, Number(body.readBigUInt64LE(16)))
      return attributesReply(node)
    }
    if (op === OP.read) {
      const from = Number(body.readBigUInt64LE(8))
      return node.bytes.subarray(from, from + body.readUInt32LE(16))
    }
    return op === OP.write ? this.#write(node, body) : ERRNO.ENOSYS
  }

  #byName(op: number, name: string): Buffer | number {
    if (op === OP.unlink) return this.#nodes.delete(name) ? 0 : ERRNO.ENOENT
    if (op === OP.create && !this.#nodes.has(name)) {
      this.#nodes.set(name, { id: this.#ids++, bytes: Buffer.alloc(0), safe: 0 })
    }
    const node = this.#nodes.get(name)
    if (node === undefined) return ERRNO.ENOENT
    const entry = Buffer.alloc(40)
    entry.writeBigUInt64LE(node.id, 0)
    const parts = [entry, attributes(node)]
    return Buffer.concat(op === OP.create ? [...parts, opened()] : parts)
  }

  #sync(node: Node): number {
    if (this.faults.fsync === 0) node.safe = node.bytes.length
    else if (this.drops) node.bytes.fill(0, node.safe)
    return this.faults.fsync
  }

  #write(node: Node, body: Buffer): Buffer | number {
    const at = Number(body.readBigUInt64LE(8))
    const size = body.readUInt32LE(16)
    if (this.faults.write !== 0 && at + size > this.room) return this.faults.write
    resize(node, Math.max(node.bytes.length, at + size))
    body.copy(node.bytes, at, HEADER, HEADER + size)
    const reply = Buffer.alloc(8)
    reply.writeUInt32LE(size, 0)
    return reply
  }
}

function nameOf(bytes: Buffer): string {
  return bytes.subarray(0, bytes.indexOf(0)).toString()
}

function resize(node: Node, size: number): void {
  const bytes = Buffer.alloc(size)
  node.bytes.copy(bytes)
  node.bytes = bytes
}

function initReply(): Buffer {
  const reply = Buffer.alloc(64)
  reply.writeUInt32LE(7, 0)
  reply.writeUInt32LE(31, 4)
  reply.writeUInt32LE(128 * 1024, 20)
  reply.writeUInt32LE(1, 24)
  return reply
}

function attributesReply(node: Node | undefined): Buffer {
  return Buffer.concat([Buffer.alloc(16), attributes(node)])
}

/** The attributes of a file, or of the folder. */
function attributes(node: Node | undefined): Buffer {
  const bytes = Buffer.alloc(88)
  bytes.writeBigUInt64LE(node?.id ?? ROOT, 0)
  bytes.writeBigUInt64LE(BigInt(node?.bytes.length ?? 0), 8)
  bytes.writeUInt32LE(node === undefined ? 0o40755 : 0o100644, 60)
  bytes.writeUInt32LE(1, 64)
  bytes.writeUInt32LE(4096, 80)
  return bytes
}

function opened(): Buffer {
  const reply = Buffer.alloc(16)
  reply.writeUInt32LE(DIRECT_IO, 8)
  return reply
}
