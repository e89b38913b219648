import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { type Answer, AnswerCollector, answerFromBody, type Flaw, isFlaw } from '../core/answer.ts'
import { FAILURES, type Failure, networkFailure } from '../core/failure.ts'
import { readRaw } from '../core/raw-reply.ts'
import type { ApiRequest } from '../core/request.ts'
import { statusFailure } from '../core/status-failure.ts'
import { beginsStream, unaskedStream } from '../core/unasked-stream.ts'
import { BodyDecoder } from './body-decoder.ts'
import type { Connection } from './connection.ts'
import { type TimeoutCode, timeoutFailure, type Watched } from './deadlines.ts'
import { EventStream } from './event-stream.ts'
import type { ExchangeContext, ExchangeListener, ExchangeSettings } from './exchange-context.ts'
import type { Outcome, Timing } from './outcome.ts'

const NO_HEADERS: IncomingHttpHeaders = {}
const SPACE = 0x20
const OPEN_BRACE = 0x7b

/** Sends one request and resolves with what came of it; it never rejects. */
export function exchange(request: ApiRequest, context: ExchangeContext): Promise<Outcome> {
  return new Promise((resolve) => new Exchange(request, context, resolve).start())
}

class Exchange implements Dispatcher.DispatchHandler, Watched {
  startedAt: number
  lastByteAt: number
  stalledAt = -1
  place = -1
  connected = false
  hasFirstToken = false

  #request: ApiRequest
  #connection: Connection
  #settings: ExchangeSettings
  #listener: ExchangeListener
  #raw: boolean
  #resolve: (outcome: Outcome) => void
  #controller: Dispatcher.DispatchController | undefined
  #settled = false
  /** Nothing more comes over the connection. */
  #ended = false
  #status = 0
  #headers: IncomingHttpHeaders = NO_HEADERS
  #events: EventStream | undefined
  /** Of a stream; a whole body is read at its end. */
  #collector: AnswerCollector | undefined
  #chunks: Buffer[] = []
  /** The body has brought more than blanks. */
  #hasBegun = false
  #length = 0
  #silenceBefore = 0
  #decoder: BodyDecoder | undefined
  #firstTokenAt: number | undefined
  #isFirstTokenTold = false

  constructor(request: ApiRequest, context: ExchangeContext, resolve: (outcome: Outcome) => void) {
    this.#request = request
    this.#connection = context.connection
    this.#settings = context.settings
    this.#listener = context.listener
    this.#raw = context.raw
    this.#resolve = resolve
    this.startedAt = this.lastByteAt = context.settings.deadlines.now()
  }

  start(): void {
    const { deadlines, headers, basePath, search } = this.#settings
    const { path, body } = this.#request
    deadlines.watch(this)
    try {
      const where = basePath + path + search
      this.#connection.dispatch({ method: 'POST', path: where, headers, body }, this)
    } catch (error) {
      this.onResponseError(undefined, error as Error)
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.connected = true
    this.#controller = controller
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    this.#status = status
    this.#headers = headers
    const now = this.#settings.deadlines.now()
    // A proxy that gives up answers itself, after its silence.
    if (status >= 500) this.#silenceBefore = now - this.lastByteAt
    this.lastByteAt = now
    this.#connection.used = true
    this.#listener.onHeaders(headers)
    const type = headers['content-type']
    if (status === 200 && this.#request.stream && type?.startsWith('text/event-stream')) {
      this.#beginStream()
    }
    const encoding = headers['content-encoding']
    if (encoding !== undefined) this.#decode(Array.isArray(encoding) ? encoding[0] : encoding)
  }

  #beginStream(): EventStream {
    const collector = new AnswerCollector()
    this.#collector = collector
    this.#events = new EventStream(
      (data) => collector.event(data),
      (data) => collector.error(data),
    )
    return this.#events
  }

  #decode(encoding: string | undefined): void {
    this.#decoder = BodyDecoder.of(encoding, {
      onBytes: (chunk) => this.#take(chunk),
      onEnd: () => this.#end(),
      onError: (error) =>
        this.#refuse('not-json', `the answer cannot be decompressed: ${error.message}`),
    })
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#settled) return
    this.lastByteAt = this.#settings.deadlines.now()
    if (this.#decoder !== undefined) this.#decoder.feed(chunk)
    else this.#take(chunk)
  }

  onResponseEnd(): void {
    this.#ended = true
    if (this.#settled) return this.#connection.trailEnded(this)
    if (this.#decoder !== undefined) this.#decoder.end()
    else this.#end()
  }

  onResponseError(_controller: Dispatcher.DispatchController | undefined, error: Error): void {
    const connection = this.#connection
    if (this.#settled) return connection.trailEnded(this)
    this.#ended = true
    const stale = connection.used && this.#status === 0
    connection.used = false
    this.#fail({ ...networkFailure(error), ...(stale && { stale }) })
  }

  expire(code: TimeoutCode, budget: number): void {
    this.#fail(timeoutFailure(code, budget))
    const reason = new Error(code)
    if (this.#controller) this.#controller.abort(reason)
    else this.#connection.abort(reason)
  }

  /** Takes decompressed bytes of the body. */
  #take(chunk: Buffer): void {
    if (this.#settled) return
    this.#length += chunk.length
    const most = this.#settings.maxAnswer
    if (this.#length > most) {
      return this.#refuse('too-large', `the answer is larger than ${most} bytes (--max-answer)`)
    }
    if (!this.#hasBegun) this.#begin(chunk)
    const collector = this.#collector
    if (collector !== undefined) {
      const before = collector.pieces
      const events = this.#events!
      if (!events.isBetween || !collector.read(chunk)) events.feed(chunk)
      this.#listener.onPieces(collector.pieces - before)
    } else this.#chunks.push(chunk)
    if (!this.hasFirstToken) this.#lookForToken()
    if (this.#events?.done) this.#settleStream()
  }

  /** Some gateways name a whole answer a stream; no line of events begins as JSON does. */
  #begin(chunk: Buffer): void {
    const first = chunk.find((byte) => byte > SPACE)
    this.#hasBegun = first !== undefined
    if (first === OPEN_BRACE) this.#collector = this.#events = undefined
  }

  #lookForToken(): void {
    const collector = this.#collector
    // Keep-alive comments and a chunk with only a role are bytes but no token.
    this.hasFirstToken = collector === undefined || collector.started
    if (!this.hasFirstToken) return
    this.#firstTokenAt = this.lastByteAt
    if (collector !== undefined) this.#tellFirstToken()
  }

  /** What comes whole may be a refusal: only once it is an answer did a token come. */
  #tellFirstToken(): void {
    if (this.#isFirstTokenTold || this.#firstTokenAt === undefined) return
    this.#isFirstTokenTold = true
    this.#listener.onFirstToken(this.#firstTokenAt - this.startedAt)
  }

  /** `[DONE]` has come: what follows is no part of the answer, and its end may never come. */
  #settleStream(): void {
    if (!this.#ended) this.#connection.trail(this)
    this.#settleAnswer(this.#collector!.finish(true))
  }

  /** The body is whole. */
  #end(): void {
    if (this.#settled) return
    if (this.#collector !== undefined) return this.#endStream(this.#events!)
    const body = textOf(this.#chunks)
    if (this.#status < 200 || this.#status > 299) {
      const date = this.#settings.date()
      return this.#fail(statusFailure(this.#status, this.#headers, body, date))
    }
    const asked = this.#request.stream
    if (asked && beginsStream(body)) return this.#unnamedStream(body)
    const stream = asked ? undefined : unaskedStream(body, this.#raw)
    if (stream !== undefined) return this.#settleAnswer(stream)
    if (this.#raw) return this.#settleRaw(body)
    this.#settleAnswer(answerFromBody(body))
  }

  /** Ends a reply that cannot be taken, and its connection. */
  #refuse(code: 'not-json' | 'too-large', message: string): void {
    this.#fail({ code, message, retryable: FAILURES[code].retried })
    this.#controller?.abort(new Error(code))
  }

  /** A stream whose content type does not say so. */
  #unnamedStream(body: string): void {
    const events = this.#beginStream()
    events.feed(Buffer.from(body))
    this.#endStream(events)
  }

  #endStream(events: EventStream): void {
    events.end()
    this.#settleAnswer(this.#collector!.finish(true, events.done))
  }

  stall(): void {
    this.#listener.onStall()
  }

  /** The reply as the server sent it, once it is known to be one. */
  #settleRaw(body: string): void {
    const said = readRaw(body, this.#request.path)
    if (isFlaw(said)) return this.#fail({ ...said, retryable: true })
    const id = this.#headers['x-request-id']
    const requestId = Array.isArray(id) ? id[0] : id
    const status = this.#status
    this.#settle({ kind: 'raw', status, requestId, body, ...said, timing: this.#timing() })
  }

  #settleAnswer(answer: Answer | Flaw): void {
    if (isFlaw(answer)) this.#fail({ ...answer, retryable: true })
    else this.#settle({ kind: 'answer', answer, timing: this.#timing() })
  }

  #fail(failure: Failure): void {
    // What breaks after the finish_reason costs no answer: asking again would pay for it twice.
    const collector = this.#collector
    this.#events?.end()
    if (collector?.complete) return this.#settleAnswer(collector.finish(true))
    const partial = collector !== undefined && collector.pieces > 0 ? partOf(collector) : {}
    const status = this.#status > 0 ? { httpStatus: this.#status } : {}
    this.#settle({
      kind: 'failure',
      failure: { ...status, ...partial, silenceMs: this.#silence(), ...failure },
      timing: this.#timing(),
    })
  }

  #settle(outcome: Outcome): void {
    if (this.#settled) return
    this.#settled = true
    this.#decoder?.destroy()
    this.#settings.deadlines.forget(this)
    if (outcome.kind !== 'failure') this.#tellFirstToken()
    this.#resolve(outcome)
  }

  #silence(): number {
    return Math.max(this.#silenceBefore, this.#settings.deadlines.now() - this.lastByteAt)
  }

  #timing(): Timing {
    const first = this.#firstTokenAt
    return {
      firstToken: first === undefined ? undefined : first - this.startedAt,
      total: this.#settings.deadlines.now() - this.startedAt,
    }
  }
}

function partOf({ partial, pieces }: AnswerCollector): Pick<Failure, 'partial' | 'pieces'> {
  return { partial, pieces }
}

function textOf(chunks: readonly Buffer[]): string {
  const [only] = chunks
  return only !== undefined && chunks.length === 1
    ? only.toString()
    : Buffer.concat(chunks).toString()
}
