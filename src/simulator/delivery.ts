import type { ServerResponse } from 'node:http'
import { engineDead } from './api-error.ts'
import type { Plan } from './ending.ts'
import type { Job } from './engine.ts'
import { startEvents, startJson } from './reply.ts'
import type { Endpoint } from './request.ts'
import { resetSocket } from './reset-socket.ts'
import type { Sequence } from './sequence.ts'
import { escapedToken } from './text.ts'
import { type ChunkTexts, DONE, event, type Frame, type Head, wholeBody } from './wire.ts'

/** Tokens written to one connection at a time at most: what a client that lags can make us buffer. */
const BURST = 256

/** A comment, which readers of events skip; vLLM's is the same. */
const KEEP_ALIVE = ': keep-alive\n\n'

/**
 * Tokens that may go out by `now`. A slow answer is stretched from its first token on: each token
 * leaves after `slowness` times the time it took.
 */
function released(sequence: Sequence, slowness: number, now: number): number {
  const { produced, firstTokenAt, finishedAt } = sequence
  if (slowness === 1 || firstTokenAt === undefined) return produced
  if (finishedAt === undefined) return Math.floor(produced / slowness)
  const stretched = slowness * (finishedAt - firstTokenAt)
  if (now - firstTokenAt >= stretched) return produced
  return Math.floor((produced * (now - firstTokenAt)) / stretched)
}

/** What every answer needs to be sent. */
interface Sending {
  readonly response: ServerResponse
  readonly sequence: Sequence
  readonly plan: Plan
}

interface StreamSending extends Sending {
  readonly texts: ChunkTexts
  readonly includeUsage: boolean
  /** Server time without a write after which a comment goes out; 0 for none. */
  readonly keepAliveMs: number
}

/**
 * A streamed answer. Headers go out at once, as vLLM's do, and the opening chunk with the first
 * token. A client that does not read stops the writing, not the generating (vLLM's goes on too);
 * nothing is kept for it, since the text of a token can be made when it is sent.
 */
export class StreamedAnswer implements Job {
  readonly sequence: Sequence
  readonly #sending: StreamSending
  #sent = 0
  #ended = false
  #wroteAt: number

  constructor(sending: StreamSending) {
    this.sequence = sending.sequence
    this.#sending = sending
    this.#wroteAt = sending.sequence.arrivedAt
    startEvents(sending.response)
  }

  pump(now: number): boolean {
    if (this.#ended) return false
    const { response, sequence, plan, keepAliveMs } = this.#sending
    const due = released(sequence, plan.slowness, now)
    if (due > this.#sent) {
      if (response.writableNeedDrain) return true
      this.#wroteAt = now
      this.#write(Math.min(due, this.#sent + BURST))
    } else if (keepAliveMs > 0 && now - this.#wroteAt >= keepAliveMs) {
      this.#wroteAt = now
      if (!response.writableNeedDrain) response.write(KEEP_ALIVE)
    }
    return sequence.state === 'finished' && !this.#ended
  }

  #write(end: number): void {
    const { response, texts, plan } = this.#sending
    const { reasoningTokens, textTokens, textSeed, tokens } = plan.answer
    let out = this.#sent === 0 ? texts.opening : ''
    const textEnd = Math.min(end, textTokens)
    for (let index = this.#sent; index < textEnd; index++) {
      const opens = index === 0 || index === reasoningTokens
      const frame = index < reasoningTokens ? texts.reasoning : texts.content
      out += framed(frame, escapedToken(textSeed, index, opens))
    }
    this.#sent = end
    if (end < tokens) response.write(out)
    else this.#end(out)
  }

  #end(out: string): void {
    this.#ended = true
    const { response, texts, includeUsage } = this.#sending
    const { answer, ending } = this.#sending.plan
    const finish = answer.finishReason === null ? '' : texts.finish(answer.finishReason)
    const usage = includeUsage ? texts.usage(answer) : ''
    switch (ending) {
      case 'whole':
        response.end(out + finish + usage + DONE)
        return
      case 'without-done':
        response.end(out + finish + usage)
        return
      case 'error':
        response.end(out + event(engineDead(500).body) + DONE)
        return
      case 'stall':
        response.write(out)
        return
      default:
        response.write(out, () => breakOff(response, ending))
    }
  }
}

function framed({ before, between, after }: Frame, token: string): string {
  if (between === undefined) return before + token + after
  return before + token + between + token + after
}

interface WholeSending extends Sending {
  readonly endpoint: Endpoint
  readonly head: Head
}

/** An answer that is sent in one piece when it is finished. */
export class WholeAnswer implements Job {
  readonly sequence: Sequence
  readonly #sending: WholeSending
  #ended = false

  constructor(sending: WholeSending) {
    this.sequence = sending.sequence
    this.#sending = sending
  }

  pump(now: number): boolean {
    if (this.#ended || this.sequence.state !== 'finished') return false
    const { slowness } = this.#sending.plan
    if (released(this.sequence, slowness, now) < this.sequence.produced) return true
    this.#ended = true
    this.#end()
    return false
  }

  #end(): void {
    const { response, endpoint, head } = this.#sending
    const { answer, ending } = this.#sending.plan
    const text = ending === 'error' ? engineDead(500).body : wholeBody(endpoint, head, answer)
    const body = Buffer.from(text)
    startJson(response, 200, body.length)
    switch (ending) {
      case 'stall':
        response.flushHeaders()
        return
      case 'reset':
      case 'cut':
        response.write(body.subarray(0, body.length >> 1), () => breakOff(response, ending))
        return
      default:
        response.end(body)
    }
  }
}

/**
 * Wall time between the last bytes and the reset: a client that meets both at once may take the RST
 * for an end of stream (libuv does, on Linux).
 */
const RESET_AFTER_MS = 5

/** Ends the connection instead of the answer. */
function breakOff({ socket }: ServerResponse, ending: 'reset' | 'cut'): void {
  if (ending === 'cut') socket?.destroySoon()
  else if (socket !== null) setTimeout(() => resetSocket(socket), RESET_AFTER_MS)
}
