import { answerFromBody, type Flaw, isFlaw } from './answer.ts'
import { errorMessage, excerpt } from './error-body.ts'

/**
 * What is wrong with a body that is otherwise handed on as it came (batch lines).
 *
 * @param path of the request
 * @returns undefined for a body that may be handed on
 */
export function rawFlaw(body: string, path: string): Flaw | undefined {
  if (path.endsWith('/completions')) {
    const answer = answerFromBody(body)
    return isFlaw(answer) ? answer : undefined
  }
  const said = errorMessage(body)
  if (said !== undefined) return { code: 'in-band-error', message: said }
  try {
    JSON.parse(body)
    return undefined
  } catch {
    return { code: 'not-json', message: `the answer is no JSON: ${excerpt(body)}` }
  }
}
