import { type Answer, answerOf, type Flaw, isFlaw, type Usage } from './answer.ts'
import { errorIn, excerpt, parseObject } from './error-body.ts'

/** What a body says that is otherwise handed on as it came (batch lines). */
export interface RawReply {
  /** Undefined where it has no choices, as the answer of /embeddings. */
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
    return isFlaw(answer) ? answer : { answer, usage: answer.usage }
  }
  if (body === undefined)
    return isJson(text) ? { answer: undefined, usage: undefined } : noJson(text)
  const { usage } = body
  const isTold = typeof usage === 'object' && usage !== null
  return errorIn(body) ?? { answer: undefined, usage: isTold ? (usage as Usage) : undefined }
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
