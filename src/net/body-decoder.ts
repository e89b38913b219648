import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib'

/** By the first byte that comes: some servers leave out the header of zlib, which RFC 9110 has. */
const DECODERS: Record<string, (first: number) => Transform> = {
  gzip: () => createGunzip(),
  'x-gzip': () => createGunzip(),
  deflate: (first) => (hasZlibHeader(first) ? createInflate() : createInflateRaw()),
  br: () => createBrotliDecompress(),
}

export interface BodyEvents {
  onBytes: (chunk: Buffer) => void
  onEnd: () => void
  onError: (error: Error) => void
}

/**
 * Decompresses a body that a server or proxy compressed without being asked to. What comes out goes
 * to `onBytes` as it comes, so that a stream stays one.
 */
export class BodyDecoder {
  #make: (first: number) => Transform
  #events: BodyEvents
  #stream: Transform | undefined

  private constructor(make: (first: number) => Transform, events: BodyEvents) {
    this.#make = make
    this.#events = events
  }

  /** @returns undefined where the header names no compression that is known */
  static of(encoding: string | undefined, events: BodyEvents): BodyDecoder | undefined {
    const make = DECODERS[encoding?.trim().toLowerCase() ?? '']
    return make === undefined ? undefined : new BodyDecoder(make, events)
  }

  feed(chunk: Buffer): void {
    this.#stream ??= this.#begin(chunk[0]!)
    this.#stream.write(chunk)
  }

  end(): void {
    if (this.#stream === undefined) this.#events.onEnd()
    else this.#stream.end()
  }

  destroy(): void {
    this.#stream?.destroy()
  }

  #begin(first: number): Transform {
    const { onBytes, onEnd, onError } = this.#events
    const stream = this.#make(first)
    stream.on('data', onBytes)
    stream.on('end', onEnd)
    stream.on('error', onError)
    return stream
  }
}

/** The method in its lower half is 8; no block of raw deflate begins so, with zeros as its padding. */
function hasZlibHeader(first: number): boolean {
  return (first & 0x0f) === 8
}
