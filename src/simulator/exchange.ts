import type { IncomingMessage, ServerResponse } from 'node:http'
import { planAnswer } from './answer.ts'
import { ApiError, engineDead, invalidJson } from './api-error.ts'
import { StreamedAnswer, WholeAnswer } from './delivery.ts'
import { answerEarly, isEarly } from './early-fault.ts'
import { type Plan, planWithFault, planWithoutFault } from './ending.ts'
import type { Job } from './engine.ts'
import type { Outcome } from './ledger.ts'
import { replyError } from './reply.ts'
import { type Endpoint, type GenerationRequest, parseRequest } from './request.ts'
import { chatChunks, completionChunks, type Head } from './wire.ts'
import type { World } from './world.ts'

/** Largest request body; vLLM has no limit, a simulator should not be filled up by mistake. */
const MAX_BODY_BYTES = 64 * 1024 * 1024

const ID_PREFIX: Readonly<Record<Endpoint, string>> = {
  chat: 'chatcmpl-',
  completion: 'cmpl-',
  response: 'resp_',
}

/**
 * One inference request, from its arrival to its outcome. It is settled when the response closes or,
 * before that, the connection: a pipelined response that was never begun hears nothing of its end.
 */
export class Exchange {
  readonly #world: World
  readonly #request: IncomingMessage
  readonly #response: ServerResponse
  readonly #id: string
  #job: Job | undefined
  #settled = false
  /** What it will be if the response goes out whole, and if the client leaves. */
  #whenSent: Outcome = 'completed'
  #whenLeft: Outcome = 'aborted'

  constructor(world: World, request: IncomingMessage, response: ServerResponse) {
    this.#world = world
    this.#request = request
    this.#response = response
    const given = request.headers['x-request-id']
    this.#id = typeof given === 'string' ? given : world.nextRequestId()
    response.setHeader('X-Request-Id', this.#id)
    world.ledger.arrived()
    response.once('close', this.#settle)
    request.socket.once('close', this.#settle)
  }

  /** Reads the body and has `answer` answer it; what it throws as ApiError is the reply. */
  async serve(answer: (body: unknown) => void): Promise<void> {
    try {
      const text = await readBody(this.#request)
      if (text === undefined || this.#settled) return
      this.#world.authorize(this.#request)
      if (this.#world.sick) throw engineDead(503)
      answer(parseJson(text))
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      this.#whenSent = error.status < 500 ? 'refused' : 'lost'
      replyError(this.#response, error)
    }
  }

  /** Answers a request for text. */
  generate(endpoint: Endpoint, body: unknown): void {
    const { settings, faultDraw, ledger } = this.#world
    const request = parseRequest(endpoint, body, settings)
    const answer = planAnswer(request, settings)
    const fault = faultDraw.next(request.prompt)?.name
    if (fault !== undefined) ledger.injected(fault)
    if (fault === undefined) {
      this.#deliver(request, planWithoutFault(answer))
    } else if (isEarly(fault)) {
      this.#whenSent = this.#whenLeft = 'faulted'
      answerEarly(this.#response, fault, request, this.#head(endpoint))
    } else {
      this.#deliver(request, planWithFault(answer, fault))
    }
  }

  #deliver(request: GenerationRequest, plan: Plan): void {
    if (!plan.usable) this.#whenSent = this.#whenLeft = 'faulted'
    const { promptTokens, tokens, finishReason } = plan.answer
    const { endpoint, priority } = request
    const reason = plan.ending === 'error' ? 'error' : (finishReason ?? 'stop')
    const spec = { promptTokens, outputTokens: tokens, priority, finishReason: reason }
    const head = this.#head(endpoint)
    const response = this.#response
    const { engine, settings } = this.#world
    const keepAliveMs = settings.sseKeepAliveMs
    this.#job = engine.open(spec, (sequence) => {
      if (!request.stream) return new WholeAnswer({ response, sequence, plan, endpoint, head })
      const texts = endpoint === 'completion' ? completionChunks(head) : chatChunks(head)
      const { includeUsage } = request
      return new StreamedAnswer({ response, sequence, plan, texts, includeUsage, keepAliveMs })
    })
  }

  #head(endpoint: Endpoint): Head {
    const { model, reasoningField } = this.#world.settings
    const created = Math.floor(Date.now() / 1000)
    return { id: ID_PREFIX[endpoint] + this.#id, created, model, reasoningField }
  }

  readonly #settle = (): void => {
    if (this.#settled) return
    this.#settled = true
    this.#request.socket.off('close', this.#settle)
    if (this.#job) this.#world.engine.close(this.#job)
    this.#world.ledger.settled(this.#outcome(), this.#job?.sequence.produced ?? 0)
  }

  #outcome(): Outcome {
    if (this.#response.writableFinished) return this.#whenSent
    return this.#world.down ? 'lost' : this.#whenLeft
  }
}

/** Undefined where the client goes away before the end of its request. */
function readBody(request: IncomingMessage): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let length = 0
    request.on('data', (chunk: Buffer) => {
      length += chunk.length
      if (length <= MAX_BODY_BYTES) chunks.push(chunk)
      else reject(new ApiError(413, 'Payload Too Large', `more than ${MAX_BODY_BYTES} bytes`))
    })
    request.on('end', () => resolve(Buffer.concat(chunks).toString()))
    request.on('error', () => resolve(undefined))
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalidJson()
  }
}
