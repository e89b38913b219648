import type { Flaw } from './answer.ts'
import { excerpt } from './error-body.ts'

/** Whether a whole body is a stream of events by its first line: a field, or a comment; JSON never is. */
export function beginsStream(body: string): boolean {
  return /^(?:data|event|id|retry)?:/.test(body)
}

/**
 * What is wrong with a whole body that is a stream of events, which the request did not ask for: some
 * servers and gateways stream whatever they are asked.
 *
 * @param raw of a batch line, which is never streamed
 * @returns undefined for a body that is none
 */
export function unaskedStream(body: string, raw: boolean): Flaw | undefined {
  if (!beginsStream(body)) return undefined
  const wayOut = raw
    ? 'put the messages into a record of their own, which is streamed, instead of a batch line'
    : 'leave out --no-stream'
  const message = `the server streams although it was not asked to (${wayOut}): ${excerpt(body)}`
  return { code: 'not-json', message }
}
