import type { Usage } from '../../core/answer.ts'
import type { ApiRequest } from '../../core/request.ts'
import { promptTokens, tokensOfValue } from '../../core/token-estimate.ts'
import type { Outcome } from '../../net/outcome.ts'

/** Tokens that a request is thought to cost before any has told. */
const TOKENS_OF_ONE = 1000

export interface TokenCostsOptions {
  /** Whether tokens are limited: else nothing is estimated. */
  limited: boolean
  /** What an answer may have at most, where that is given. */
  maxTokens: number | undefined
  /** Told once, when a reply does not tell what it cost. */
  onEstimate: () => void
}

/** What requests cost, for the limit of tokens a minute. */
export class TokenCosts {
  #options: TokenCostsOptions
  #requests = 0
  #tokens = 0
  #estimates = false

  constructor(options: TokenCostsOptions) {
    this.#options = options
  }

  /** What the next request is thought to cost: as much as those that were answered did. */
  get ofOne(): number {
    if (this.#tokens === 0) return this.#options.maxTokens ?? TOKENS_OF_ONE
    return this.#tokens / this.#requests
  }

  /**
   * Notes how a request has ended; returns what it cost.
   *
   * @param pieces of text that came in a stream, about as many tokens
   */
  add(request: ApiRequest, outcome: Outcome, pieces: number): number {
    if (!this.#options.limited) return 0
    if (outcome.kind === 'failure') return outcome.failure.pieces ?? 0
    const { usage } = outcome.kind === 'answer' ? outcome.answer : outcome
    const tokens = totalOf(usage) || this.#estimate(request, outcome, pieces)
    this.#requests++
    this.#tokens += tokens
    return tokens
  }

  #estimate(
    request: ApiRequest,
    outcome: Exclude<Outcome, { kind: 'failure' }>,
    pieces: number,
  ): number {
    if (!this.#estimates) this.#options.onEstimate()
    this.#estimates = true
    const prompt = promptTokens(request.body)
    const { answer } = outcome
    if (answer === undefined) return prompt
    const { content, reasoning, extra } = answer
    const text = pieces > 0 ? pieces : tokensOfValue([content, reasoning])
    return prompt + text + tokensOfValue(extra)
  }
}

/** The parts of a usage that make its total, in the words of either API. */
const PARTS = ['prompt_tokens', 'completion_tokens', 'input_tokens', 'output_tokens'] as const

/** 0 where it is not told. */
function totalOf(usage: Usage | undefined): number {
  const { total_tokens: total } = usage ?? {}
  if (typeof total === 'number') return total
  return PARTS.reduce((sum, name) => {
    const part = usage?.[name]
    return typeof part === 'number' ? sum + part : sum
  }, 0)
}
