import type { IncomingHttpHeaders } from 'node:http'
import type { Connection } from './connection.ts'
import type { Deadlines } from './deadlines.ts'

/** What all requests to one server have in common. */
export interface ExchangeSettings {
  deadlines: Deadlines
  /** Flat name, value, name, value. */
  headers: string[]
  /** The path of the base URL, without a slash at its end. */
  basePath: string
  /** What follows every path, or an empty text. */
  search: string
  /** Milliseconds since 1970, for a Retry-After date. */
  date: () => number
  /** Bytes of a body at most, after decompression. */
  maxAnswer: number
}

/** Told of what one request brings; an object with methods, since closures per request cost more. */
export interface ExchangeListener {
  /** The first token of a stream, or of an answer that is whole by now, came so many ms after dispatch. */
  onFirstToken(ms: number): void
  /** A read of the stream brought so many pieces of text, about as many tokens. */
  onPieces(count: number): void
  /** The stream has stood still for two seconds. */
  onStall(): void
  /** The headers of any reply. */
  onHeaders(headers: IncomingHttpHeaders): void
}

export interface ExchangeContext {
  connection: Connection
  settings: ExchangeSettings
  listener: ExchangeListener
  /** Whether the body is handed on as it is (batch lines). */
  raw: boolean
}
