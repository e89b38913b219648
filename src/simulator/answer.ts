import { resolveOptions, type Settings, type SimulatorOptions } from './options.ts'
import { hashText, lognormal, mix, uniform } from './random.ts'
import { asBody, type GenerationRequest, parseRequest } from './request.ts'
import { joinTokens } from './text.ts'

/** null where a fault leaves it out. */
export type FinishReason = 'stop' | 'length' | 'abort' | null

/** An answer before it is made: everything about it but the time it takes. */
export interface Answer {
  /** Names the text; see text.ts. */
  readonly textSeed: number
  readonly promptTokens: number
  /** Tokens generated, those of the reasoning first. */
  readonly tokens: number
  readonly reasoningTokens: number
  /** Tokens that come with text: all, except in an empty answer. */
  readonly textTokens: number
  readonly finishReason: FinishReason
}

export interface Usage {
  readonly prompt_tokens: number
  readonly completion_tokens: number
  readonly total_tokens: number
  readonly completion_tokens_details: { readonly reasoning_tokens: number }
}

/** What a client should end up with. */
export interface ExpectedAnswer {
  readonly reasoning: string
  readonly content: string
  readonly finish_reason: FinishReason
  readonly usage: Usage
}

/** Indexes of the draws made per prompt. */
const DRAW = { length: 0, share: 2, text: 3 } as const

/** The share of reasoning varies uniformly by this much of what keeps it within 0 and 1. */
const SHARE_SPREAD = 0.75

/** Draws the answer to a request; the same request always gets the same one. */
export function planAnswer(request: GenerationRequest, settings: Settings): Answer {
  const seed = mix(hashText(request.prompt, settings.seed), request.seed)
  const { meanTokens, lengthSigma } = settings
  const drawn = Math.round(lognormal(seed, DRAW.length, meanTokens, lengthSigma))
  const natural = Math.max(1, request.minTokens, drawn)
  const limit = Math.min(
    request.maxTokens ?? Number.POSITIVE_INFINITY,
    settings.maxTokens,
    settings.maxModelLen - request.promptTokens,
  )
  const tokens = request.ignoreEos ? limit : Math.min(natural, limit)
  const reasoning = request.endpoint === 'completion' ? 0 : drawReasoning(seed, natural, settings)
  return {
    textSeed: mix(hashText(settings.model, seed), DRAW.text),
    promptTokens: request.promptTokens,
    tokens,
    reasoningTokens: Math.min(tokens, reasoning),
    textTokens: tokens,
    finishReason: natural > limit || request.ignoreEos ? 'length' : 'stop',
  }
}

/**
 * Tokens of reasoning in an answer of natural length. A cut answer may therefore be nothing but
 * reasoning; one that stops by itself has at least one token of content.
 */
function drawReasoning(seed: number, natural: number, { reasoningShare: mean }: Settings): number {
  if (mean === 0) return 0
  const spread = SHARE_SPREAD * Math.min(mean, 1 - mean)
  const share = mean + spread * (2 * uniform(seed, DRAW.share) - 1)
  return Math.min(natural - 1, Math.round(share * natural))
}

export function usageOf(answer: Answer): Usage {
  return {
    prompt_tokens: answer.promptTokens,
    completion_tokens: answer.tokens,
    total_tokens: answer.promptTokens + answer.tokens,
    completion_tokens_details: { reasoning_tokens: answer.reasoningTokens },
  }
}

/** The text of the reasoning; empty where there is none. */
export function reasoningText({ textSeed, reasoningTokens, textTokens }: Answer): string {
  return joinTokens(textSeed, 0, Math.min(reasoningTokens, textTokens))
}

export function contentText({ textSeed, reasoningTokens, textTokens }: Answer): string {
  return joinTokens(textSeed, reasoningTokens, textTokens)
}

/**
 * What a server started with `options` answers to a request body where no fault hits it: a chat body
 * (`messages`), a text completion (`prompt`; its text is `content`) or a response (`input`).
 * @throws ApiError for a body that the server refuses
 */
export function expectedAnswer(body: unknown, options: SimulatorOptions = {}): ExpectedAnswer {
  const settings = resolveOptions(options)
  const members = asBody(body)
  const endpoint = 'prompt' in members ? 'completion' : 'input' in members ? 'response' : 'chat'
  const answer = planAnswer(parseRequest(endpoint, body, settings), settings)
  return {
    reasoning: reasoningText(answer),
    content: contentText(answer),
    finish_reason: answer.finishReason,
    usage: usageOf(answer),
  }
}
