import { badRequest, invalidField, unknownModel } from './api-error.ts'
import type { Settings } from './options.ts'
import { hashText } from './random.ts'
import { countPromptTokens } from './text.ts'

export type Endpoint = 'chat' | 'completion' | 'response'

/** What the simulator reads of a request; sampling parameters other than these change nothing. */
export interface GenerationRequest {
  readonly endpoint: Endpoint
  /** Identity of the prompt: answers and faults are drawn from it. */
  readonly prompt: string
  readonly promptTokens: number
  /** The request's own `seed`; other seeds give other answers to the same prompt. */
  readonly seed: number
  readonly stream: boolean
  readonly includeUsage: boolean
  /** The request's own limit. */
  readonly maxTokens: number | undefined
  readonly minTokens: number
  readonly ignoreEos: boolean
  readonly priority: number
}

type Body = Readonly<Record<string, unknown>>

/** Tokens the chat template adds to each message, about as many as the templates in use do. */
const TEMPLATE_TOKENS = 4

/**
 * Checks a body as vLLM does and takes from it what matters here.
 * @throws ApiError with the status and body that vLLM would answer
 */
export function parseRequest(
  endpoint: Endpoint,
  value: unknown,
  settings: Settings,
): GenerationRequest {
  const body = asBody(value)
  checkModel(body, settings)
  if (integer(body, 'n', 1, 1) !== 1) throw badRequest('the simulator makes one choice only', 'n')
  const stream = body.stream === true
  if (stream && endpoint === 'response') throw badRequest('the simulator does not stream responses')
  const { prompt, promptTokens } = PROMPTS[endpoint](body)
  const request: GenerationRequest = {
    endpoint,
    prompt,
    promptTokens,
    seed: typeof body.seed === 'number' ? hashText(String(body.seed), 0) : 0,
    stream,
    includeUsage: readIncludeUsage(body, stream),
    maxTokens: readMaxTokens(body),
    minTokens: integer(body, 'min_tokens', 0, 0),
    ignoreEos: body.ignore_eos === true,
    priority: readPriority(body, settings),
  }
  checkLength(request, settings)
  return request
}

/**
 * Takes the body as an object.
 * @throws ApiError
 */
export function asBody(value: unknown): Body {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Body
  throw invalidField('', 'model_attributes_type', 'Input should be a valid dictionary or object')
}

/** @throws ApiError for any model but the one served; none given is that one, as in vLLM. */
export function checkModel(body: Body, settings: Settings): void {
  const { model } = body
  if (model === undefined || model === null || model === settings.model) return
  throw unknownModel(typeof model === 'string' ? model : JSON.stringify(model))
}

const PROMPTS: Readonly<
  Record<Endpoint, (body: Body) => { prompt: string; promptTokens: number }>
> = {
  chat: ({ messages }) => {
    if (!Array.isArray(messages)) throw invalidField('messages', 'missing', 'Field required')
    if (messages.length === 0) throw badRequest('messages must not be empty', 'messages')
    const prompt = JSON.stringify(messages)
    return { prompt, promptTokens: countMessages(messages) }
  },
  completion: (body) => {
    const prompt = single(body.prompt)
    if (typeof prompt === 'string') return { prompt, promptTokens: countPromptTokens(prompt) }
    if (isTokenIds(prompt)) return { prompt: JSON.stringify(prompt), promptTokens: prompt.length }
    if (body.prompt === undefined) throw invalidField('prompt', 'missing', 'Field required')
    throw badRequest('prompt must be one text or one list of token ids', 'prompt')
  },
  response: ({ input }) => {
    if (typeof input === 'string') return { prompt: input, promptTokens: countPromptTokens(input) }
    if (!Array.isArray(input)) throw invalidField('input', 'missing', 'Field required')
    return { prompt: JSON.stringify(input), promptTokens: countMessages(input) }
  },
}

/** A list of one prompt is that prompt. */
function single(prompt: unknown): unknown {
  if (!Array.isArray(prompt) || prompt.length !== 1 || typeof prompt[0] === 'number') return prompt
  return prompt[0]
}

function isTokenIds(value: unknown): value is number[] {
  return Array.isArray(value) && value.length > 0 && value.every((id) => Number.isInteger(id))
}

function countMessages(messages: readonly unknown[]): number {
  let tokens = 0
  for (const message of messages) {
    const { content } = asBody(message)
    tokens += TEMPLATE_TOKENS + countPromptTokens(textOf(content))
  }
  return tokens
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  const texts = content.map((part: { text?: unknown } | null) => part?.text)
  return texts.filter((text) => typeof text === 'string').join('')
}

function integer(body: Body, name: string, least: number, otherwise: number): number {
  const value = body[name]
  if (value === undefined || value === null) return otherwise
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw invalidField(name, 'int_type', 'Input should be a valid integer')
  }
  if (value < least) throw badRequest(`${name} must be at least ${least}, got ${value}.`, name)
  return value
}

/** `max_completion_tokens` goes before the older `max_tokens`; `max_output_tokens` is responses'. */
function readMaxTokens(body: Body): number | undefined {
  for (const name of ['max_completion_tokens', 'max_tokens', 'max_output_tokens']) {
    const value = integer(body, name, 1, 0)
    if (value > 0) return value
  }
  return undefined
}

function readIncludeUsage(body: Body, stream: boolean): boolean {
  const options = body.stream_options
  if (typeof options !== 'object' || options === null) return false
  if (!stream) throw badRequest('Stream options can only be defined when `stream=True`.')
  return (options as Body).include_usage === true
}

function readPriority(body: Body, settings: Settings): number {
  const priority = integer(body, 'priority', Number.MIN_SAFE_INTEGER, 0)
  if (priority !== 0 && !settings.priorityScheduling) {
    throw badRequest(`Got priority ${priority} but Priority scheduling is not enabled.`)
  }
  return priority
}

function checkLength(request: GenerationRequest, { maxModelLen }: Settings): void {
  const { promptTokens, maxTokens } = request
  const length = `This model's maximum context length is ${maxModelLen} tokens.`
  if (promptTokens >= maxModelLen) {
    const message = `${length} However, your request has ${promptTokens} input tokens.`
    throw badRequest(`${message} Please reduce the length of the input messages.`)
  }
  if (maxTokens !== undefined && promptTokens + maxTokens > maxModelLen) {
    const name = "'max_tokens' or 'max_completion_tokens'"
    const message = `${name} is too large: ${maxTokens}. ${length}`
    throw badRequest(`${message} Your request has ${promptTokens} input tokens.`)
  }
}
