import { STATUS_CODES } from 'node:http'

interface ErrorDetails {
  readonly param?: string
  readonly headers?: Readonly<Record<string, string>>
  /** JSON instead of `{"error":{"message","type","param","code"}}`. */
  readonly body?: string
}

/**
 * An answer that is an error, in vLLM's form. Constructors below carry its wording and `type`s
 * (vllm/entrypoints/openai, 2026).
 */
export class ApiError extends Error {
  readonly status: number
  readonly type: string
  readonly param: string | null
  readonly headers: Readonly<Record<string, string>>
  readonly body: string

  constructor(status: number, type: string, message: string, more: ErrorDetails = {}) {
    super(message)
    this.name = 'ApiError'
    this.status = status
    this.type = type
    this.param = more.param ?? null
    this.headers = more.headers ?? {}
    this.body =
      more.body ?? JSON.stringify({ error: { message, type, param: this.param, code: status } })
  }
}

export function badRequest(message: string, param?: string): ApiError {
  return new ApiError(400, 'BadRequestError', message, param === undefined ? {} : { param })
}

/** The request does not fit the schema; the message is pydantic's list of what is wrong. */
export function invalidField(location: string, problem: string, message: string): ApiError {
  const detail = `[{'type': '${problem}', 'loc': ('body', '${location}'), 'msg': '${message}'}]`
  return new ApiError(400, 'Bad Request', detail)
}

export function invalidJson(): ApiError {
  const detail = "[{'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error'}]"
  return new ApiError(400, 'Bad Request', detail)
}

export function unknownModel(model: string): ApiError {
  const message = `The model \`${model}\` does not exist.`
  return new ApiError(404, 'NotFoundError', message, { param: 'model' })
}

export function notFound(): ApiError {
  return new ApiError(404, 'Not Found', 'Not Found')
}

/** What a dead engine answers, and what an in-band error says. */
export function engineDead(status: number): ApiError {
  const message = 'EngineCore encountered an issue. See stack trace (above) for the root cause.'
  return new ApiError(status, STATUS_CODES[status] ?? 'Error', message)
}

/** An injected status; 429 says when to come back, in seconds of server time. */
export function injectedStatus(status: number): ApiError {
  const name = STATUS_CODES[status] ?? 'Error'
  const headers = status === 429 ? { 'Retry-After': '1' } : {}
  return new ApiError(status, name, `${name} (injected by the simulator)`, { headers })
}

/** vLLM checks keys in a middleware with a form of its own: `error` is a string there. */
export function unauthorized(): ApiError {
  const body = JSON.stringify({ error: 'Unauthorized' })
  return new ApiError(401, 'Unauthorized', 'Unauthorized', { body })
}
