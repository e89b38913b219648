import { type Answer, answerOf, type Flaw, isFlaw, type Usage } from './answer.ts'
import { errorIn, excerpt, parseObject } from './error-body.ts'

/** What a body says that is otherwise handed on as it came (batch lines). */
export interface RawReply {
  /**
   * Its first choice, cut where any of them is; undefined where there are none, as in the answer of
   * /embeddings.
   */
  answer: Answer | undefined
  usage: Usage | undefined
}

/**
 * Reads such a body.
 *
 * @param path of the request
 * @returns a Flaw where it may not be handed on
 */
export function readRaw(text: string, path: string): RawReply | Flaw {
  const body = parseObject(text)
  if (path.endsWith('/completions')) {
    const answer = answerOf(body, text)
    if (isFlaw(answer)) return answer
    const cut = isAnyCut(body?.choices) ? { finishReason: 'length' } : {}
    return { answer: { ...answer, ...cut }, usage: answer.usage }
  }
  if (body === undefined)
    return isJson(text) ? { answer: undefined, usage: undefined } : noJson(text)
  const { usage } = body
  const isTold = typeof usage === 'object' && usage !== null
  return errorIn(body) ?? { answer: undefined, usage: isTold ? (usage as Usage) : undefined }
}

function isAnyCut(choices: unknown): boolean {
  if (!Array.isArray(choices)) return false
  return choices.some((choice: { finish_reason?: unknown } | null) => {
    return choice?.finish_reason === 'length'
  })
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

function noJson(text: string): Flaw {
  return { code: 'not-json', message: `the answer is no JSON: ${excerpt(text)}` }
}
