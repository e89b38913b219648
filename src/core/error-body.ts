import type { Flaw } from './answer.ts'

/** What of a body tells of an error. */
interface ErrorBody {
  error?: unknown
  object?: unknown
  message?: unknown
  detail?: unknown
}

/** The server's sentence in an error body, of vLLM's and OpenAI's form or SGLang's flat one. */
export function errorMessage(text: string): string | undefined {
  const body = parseObject(text)
  const error = body && errorIn(body)
  return error?.message
}

/** The error that a body holds, though the server said 200. */
export function errorIn(body: ErrorBody): Flaw | undefined {
  const nested = body.error
  if (nested !== undefined && nested !== null) {
    const said = typeof nested === 'object' && 'message' in nested ? nested.message : nested
    return flaw(said)
  }
  return body.object === 'error' ? flaw(body.message) : undefined
}

/** What a body without choices says instead: FastAPI's and proxies' forms, under status 200 too. */
export function errorBeside({ detail, message }: ErrorBody): Flaw | undefined {
  const said = detail ?? message
  return said === undefined || said === null ? undefined : flaw(said)
}

/** The error that an event named so is, whatever its data. */
export function errorEvent(data: string): Flaw {
  const body = parseObject(data)
  return (body && (errorIn(body) ?? errorBeside(body))) ?? flaw(data)
}

function flaw(said: unknown): Flaw {
  const text = typeof said === 'string' ? said : JSON.stringify(said)
  return { code: 'in-band-error', message: `the server says: ${excerpt(text ?? 'error')}` }
}

/** The object that a text is as JSON; undefined where it is none. */
export function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return isObject ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

/** The beginning of a text, for a message; of an HTML page its title. */
export function excerpt(text: string): string {
  const title = text.startsWith('<') ? /<title>([^<]+)<\/title>/i.exec(text)?.[1] : undefined
  const line = (title === undefined ? text : `an HTML page, ${title}`).replace(/\s+/g, ' ').trim()
  return line.length > 200 ? `${line.slice(0, 200)}…` : line
}
