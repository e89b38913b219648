import type { Transform } from 'node:stream'
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib'

const DECODERS: Record<string, () => Transform> = {
  gzip: createGunzip,
  'x-gzip': createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
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
  #stream: Transform

  private constructor(stream: Transform, { onBytes, onEnd, onError }: BodyEvents) {
    this.#stream = stream
    stream.on('data', onBytes)
    stream.on('end', onEnd)
    stream.on('error', onError)
  }

  /** @returns undefined where the header names no compression that is known */
  static of(encoding: string | undefined, events: BodyEvents): BodyDecoder | undefined {
    const make = DECODERS[encoding?.trim().toLowerCase() ?? '']
    return make === undefined ? undefined : new BodyDecoder(make(), events)
  }

  feed(chunk: Buffer): void {
    this.#stream.write(chunk)
  }

  end(): void {
    this.#stream.end()
  }

  destroy(): void {
    this.#stream.destroy()
  }
}
