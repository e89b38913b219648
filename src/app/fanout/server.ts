import type { Context } from '../../cli/command.ts'
import { excerpt } from '../../core/error-body.ts'
import type { Failure } from '../../core/failure.ts'
import { Secrets } from '../../core/mask.ts'
import { REDIRECTS, statusFailure } from '../../core/status-failure.ts'
import { type ToolError, usageError } from '../../core/tool-error.ts'
import { readSecret, readText } from '../../files/secret.ts'
import { type ConnectionSettings, proxyOf } from '../../net/connection.ts'
import { type Endpoint, parseEndpoint, serverError } from '../../net/endpoint.ts'
import { type QueryReply, query } from '../../net/query.ts'
import type { FanoutOptions } from './options.ts'

const DEFAULT_URL = 'http://127.0.0.1:8000/v1'
/** For /models and /health, in milliseconds of server time. */
const QUERY_TIMEOUT = 10_000
/** Milliseconds of server time; vLLM under uvicorn closes idle connections after 5 s. */
const KEEP_ALIVE = 4000

/** What a server says that cannot answer at the moment. */
export interface Busy {
  /** What ends the run where it stays so. */
  error: ToolError
  /** Milliseconds that the server asked to wait. */
  retryAfter: number | undefined
}

/** The server of a run: where it is, how to talk to it, and what it says of itself. */
export class Server {
  readonly endpoint: Endpoint
  readonly connection: ConnectionSettings
  /** For requests: flat name, value, name, value. */
  readonly headers: string[]
  /** Whether the server has answered anything in this run. */
  seen = false
  #secrets: Secrets
  #timeout: number
  #stopping: AbortSignal

  /**
   * The servers that the options or the environment name.
   *
   * @param stopping aborted when the run is to end: questions that wait for a reply are given up
   */
  static all(context: Context, options: FanoutOptions, stopping: AbortSignal): Server[] {
    const urls = options.url.length > 0 ? options.url : [context.env.OPENAI_BASE_URL || DEFAULT_URL]
    const twice = urls.find((url, index) => urls.indexOf(url) !== index)
    if (twice !== undefined) throw usageError(`--url ${twice} is given twice`)
    return urls.map((url) => new Server(url, context, options, stopping))
  }

  /** @throws ToolError for a URL, header or key file that cannot be */
  constructor(url: string, context: Context, options: FanoutOptions, stopping: AbortSignal) {
    this.endpoint = parseEndpoint(url)
    const key = apiKey(context, options)
    const secretHeaders = options.headerFile === undefined ? [] : headerLines(options.headerFile)
    this.headers = requestHeaders(key, options.header, secretHeaders)
    this.#secrets = new Secrets(key, secretHeaders.map(headerOf))
    this.#timeout = QUERY_TIMEOUT / options.clockSpeed
    this.#stopping = stopping
    this.connection = {
      origin: this.endpoint.origin,
      keepAlive: KEEP_ALIVE / options.clockSpeed,
      ca: options.caFile === undefined ? undefined : readText(options.caFile),
      proxy: proxyOf(context.env),
    }
  }

  /**
   * The models that the server lists, or that it is worth asking again.
   *
   * @param date milliseconds since 1970
   * @throws ToolError where it cannot be asked, or lists none
   */
  async models(date: number): Promise<string[] | Busy> {
    const reply = await this.#askModels()
    if ('failure' in reply) throw this.unreachable(reply.failure.message)
    if (reply.status !== 200) {
      const failure = statusFailure(reply.status, reply.headers, reply.body, date)
      const error = this.refusal(failure, '/models')
      if (failure.retryable) return { error, retryAfter: failure.retryAfter }
      throw error
    }
    this.seen = true
    const models = modelNames(reply.body)
    if (models.length > 0) return models
    const message = `GET /models lists no model (is this an OpenAI-compatible server?): ${excerpt(reply.body)}`
    throw serverError('model', this.endpoint, this.masked(message))
  }

  /** Whether the server says that it is well: `/health`, or `/models` where there is no such. */
  async isWell(): Promise<boolean> {
    const health = await this.#ask(this.endpoint.healthPath)
    if (!('status' in health)) return false
    if (health.status !== 404) return isSuccess(health.status)
    const models = await this.#askModels()
    return 'status' in models && isSuccess(models.status)
  }

  #askModels(): Promise<QueryReply> {
    const { basePath, search } = this.endpoint
    return this.#ask(`${basePath}/models${search}`)
  }

  #ask(path: string): Promise<QueryReply> {
    return query(this.connection, path, this.headers, this.#timeout, this.#stopping)
  }

  /** The text of `/metrics`; undefined where there is none. */
  async metrics(): Promise<string | undefined> {
    const path = this.endpoint.healthPath.replace(/health$/, 'metrics')
    const reply = await query(this.connection, path, this.headers, this.#timeout)
    return 'status' in reply && reply.status === 200 ? reply.body : undefined
  }

  /** The end of a run whose server cannot be reached. */
  unreachable(why: string): Error {
    const message =
      `cannot reach the server: ${why}. Is it running, and is this its address? ` +
      `Try: curl ${this.endpoint.url}/models (--url or $OPENAI_BASE_URL name another)`
    return serverError('unreachable', this.endpoint, this.masked(message))
  }

  /** The end of a run whose server refuses the key, the path or the model, or is elsewhere. */
  refusal({ httpStatus: status = 0, message: told }: Failure, path: string): ToolError {
    const said = told.replace(/^HTTP \d+:? ?/, '')
    const advice: Record<number, string> = {
      401: 'give the key in $OPENAI_API_KEY or with --api-key-file',
      403: 'this key may not do that: check its rights, or the proxy in between',
      404: 'is the path of --url right (it usually ends in /v1), and does the model exist (--model)?',
    }
    const todo = advice[status] ?? (REDIRECTS.includes(status) ? '' : 'see the log of the server')
    const why = said.replace(/\.$/, '') || 'no reason given'
    const parts = [`HTTP ${status} for ${path}`, why, todo]
    const message = parts.filter((part) => part !== '').join(': ')
    return serverError('refused-by-server', this.endpoint, this.masked(message))
  }

  /** A text in which the secrets, if a server echoed them, are masked. */
  masked(text: string): string {
    return this.#secrets.inMessage(text)
  }
}

function isSuccess(status: number): boolean {
  return status >= 200 && status < 300
}

function modelNames(body: string): string[] {
  try {
    const { data } = JSON.parse(body) as { data?: { id?: unknown }[] }
    return (data ?? []).map(({ id }) => id).filter((id) => typeof id === 'string')
  } catch {
    return []
  }
}

function apiKey(context: Context, options: FanoutOptions): string | undefined {
  const key =
    options.apiKeyFile === undefined ? context.env.OPENAI_API_KEY : readSecret(options.apiKeyFile)
  if (key === undefined || key === '') return undefined
  if (!/^[\x21-\x7e]+$/.test(key))
    throw usageError('the API key holds white space or control bytes')
  return key
}

/** The lines of a file of headers. */
function headerLines(file: string): string[] {
  return readText(file)
    .split('\n')
    .filter((line) => line.trim() !== '')
}

function requestHeaders(
  key: string | undefined,
  given: readonly string[],
  secret: readonly string[],
): string[] {
  for (const line of given) {
    if (/^\s*authorization\s*:/i.test(line)) {
      throw usageError('Authorization does not belong on a command line: use --header-file')
    }
  }
  const own = [...given, ...secret].flatMap(headerOf)
  const named = own.some((word, index) => index % 2 === 0 && word.toLowerCase() === 'authorization')
  const authorization = key === undefined || named ? [] : ['authorization', `Bearer ${key}`]
  return ['content-type', 'application/json', ...authorization, ...own]
}

const HEADER = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*:\s*([\t\x20-\x7e\x80-\xff]*?)\s*$/

function headerOf(line: string): [string, string] {
  const [, name, value] = HEADER.exec(line) ?? []
  if (name === undefined || value === undefined) {
    throw usageError(`a header is 'Name: value', not '${line.split(':')[0]}'`)
  }
  return [name, value]
}
