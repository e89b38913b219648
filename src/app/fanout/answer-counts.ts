import type { Answer, Usage } from '../../core/answer.ts'
import type { Failure } from '../../core/failure.ts'

/** What is counted of the answers to a record. */
export interface AnswerCounts {
  /** Of all its turns. */
  usage: Usage | undefined
  /** The answer to any turn was cut by the token limit. */
  cut: boolean
  filtered: boolean
  empty: boolean
}

/** What is counted where all is told by one answer, the last one. */
export function countsOf(answer: Answer): AnswerCounts {
  const { content, extra, finishReason, usage } = answer
  return {
    usage,
    cut: isCut(answer),
    filtered: finishReason === 'content_filter',
    empty: (content ?? '') === '' && extra.tool_calls === undefined,
  }
}

/** What is counted of an answer that is made a failure of. */
export function countsOfCut(usage: Usage | undefined): AnswerCounts {
  return { usage, cut: true, filtered: false, empty: false }
}

/** The tokens that a reply says it cost to generate; undefined where it does not. */
export function generatedTokens(usage: Usage | undefined): number | undefined {
  // The answers of /responses, to batch lines, have names of their own.
  const tokens = usage?.completion_tokens ?? usage?.output_tokens
  return typeof tokens === 'number' && Number.isFinite(tokens) ? tokens : undefined
}

export function isCut({ finishReason }: Answer): boolean {
  return finishReason === 'length'
}

/** The failure that `--on-length fail` makes of an answer. */
export function cutFailure({ content, reasoning }: Answer): Failure {
  const text =
    typeof content === 'string' ? content : content === null ? '' : JSON.stringify(content)
  return {
    code: 'cut-by-length',
    message: 'The answer was cut by the token limit (--on-length fail)',
    retryable: false,
    partial: { reasoning_content: reasoning, content: text },
  }
}
