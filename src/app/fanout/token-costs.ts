import type { Usage } from '../../core/answer.ts'
import type { Outcome } from '../../net/outcome.ts'

/** Tokens that a request is thought to cost before any has told. */
const TOKENS_OF_ONE = 1000

/** What requests cost, for the limit of tokens a minute. */
export class TokenCosts {
  #first: number
  #requests = 0
  #tokens = 0

  /** @param maxTokens what an answer may have at most, where that is given */
  constructor(maxTokens: number | undefined) {
    this.#first = maxTokens ?? TOKENS_OF_ONE
  }

  /** What the next request is thought to cost: as much as those that were answered did. */
  get ofOne(): number {
    return this.#tokens === 0 ? this.#first : this.#tokens / this.#requests
  }

  /** Notes how a request has ended; returns what it cost. */
  add(outcome: Outcome): number {
    if (outcome.kind === 'failure') return outcome.failure.pieces ?? 0
    const tokens = outcome.kind === 'answer' ? totalOf(outcome.answer.usage) : 0
    this.#requests++
    this.#tokens += tokens
    return tokens
  }
}

function totalOf(usage: Usage | undefined): number {
  const total = usage?.total_tokens
  return typeof total === 'number' ? total : 0
}
