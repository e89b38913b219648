import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import { type AddressInfo, createServer as createTcpServer, type Socket } from 'node:net'

/** What `t.after` of node:test is for. */
export interface Lifetime {
  after(cleanUp: () => Promise<void>): void
}

/** A request as it came. */
export interface Seen {
  path: string
  headers: IncomingHttpHeaders
  body: string
}

export interface ApiServer {
  /** Base URL, `/v1` included. */
  url: string
  /** The inference requests so far (POST), in the order in which they came. */
  requests: Seen[]
  /** The paths of GET requests so far. */
  gets: string[]
  /** The most inference requests that were open at once. */
  peak: number
  /** Takes the server down, with what is open, and up again at the same port. */
  down(): Promise<void>
  up(): Promise<void>
}

/** Answers an inference request; `nth` counts from 0. */
export type Answerer = (
  request: Seen,
  response: ServerResponse,
  nth: number,
) => void | Promise<void>

export interface ApiServerOptions {
  /** The names that GET /v1/models lists. */
  models?: string[]
  /** Other answers to GET, by path. */
  gets?: Record<string, (response: ServerResponse, request: IncomingMessage) => void>
}

/** A real server on a free port that behaves as a test says, until the test ends. */
export async function serve(
  lifetime: Lifetime,
  answer: Answerer,
  options: ApiServerOptions = {},
): Promise<ApiServer> {
  const seen: Seen[] = []
  const gets: string[] = []
  let open = 0
  const server = createServer({ keepAliveTimeout: 5000 }, (request, response) => {
    const path = request.url!
    if (request.method === 'GET') {
      gets.push(path)
      const own = options.gets?.[path] ?? DEFAULT_GETS[path]
      if (path === '/v1/models' && !options.gets?.[path]) return json(response, models(options))
      return own ? own(response, request) : json(response, { error: { message: 'no' } }, 404)
    }
    api.peak = Math.max(api.peak, ++open)
    response.once('close', () => open--)
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('error', () => {})
    request.on('end', () => {
      const one = { path, headers: request.headers, body: Buffer.concat(chunks).toString() }
      const nth = seen.push(one) - 1
      void answer(one, response, nth)
    })
  })
  const port = await listen(server, 0)
  const api: ApiServer = {
    url: `http://127.0.0.1:${port}/v1`,
    requests: seen,
    gets,
    peak: 0,
    down: () => shut(server),
    up: async () => void (await listen(server, port)),
  }
  lifetime.after(() => shut(server))
  return api
}

const DEFAULT_GETS: NonNullable<ApiServerOptions['gets']> = {
  '/health': (response) => void response.end(),
}

function models({ models = ['m'] }: ApiServerOptions): object {
  return { object: 'list', data: models.map((id) => ({ id, object: 'model' })) }
}

async function listen(server: Server, port: number): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

async function shut(server: Server): Promise<void> {
  if (!server.listening) return
  server.close()
  server.closeAllConnections()
  await once(server, 'close')
}

/** A bare TCP server; what `serveSocket` is handed is one connection. */
export async function serveTcp(
  lifetime: Lifetime,
  serveSocket: (socket: Socket, nth: number) => void,
): Promise<string> {
  const sockets = new Set<Socket>()
  let count = 0
  const server = createTcpServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
    serveSocket(socket, count++)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  lifetime.after(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

/** The URL of a port on which nobody listens. */
export async function deadUrl(): Promise<string> {
  const server = createServer()
  const port = await listen(server, 0)
  await shut(server)
  return `http://127.0.0.1:${port}/v1`
}

export function json(response: ServerResponse, body: object | string, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(typeof body === 'string' ? body : JSON.stringify(body))
}

/** A whole chat completion. */
export function chat(content: string, more: object = {}, choice: object = {}): object {
  return {
    id: 'chatcmpl-1',
    object: 'chat.completion',
    model: 'm',
    choices: [
      { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop', ...choice },
    ],
    usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
    ...more,
  }
}

/** A chunk of a stream with a delta. */
export function delta(part: object, finish: string | null = null): object {
  return {
    object: 'chat.completion.chunk',
    model: 'm',
    choices: [{ index: 0, delta: part, finish_reason: finish }],
  }
}

/** The chunk that `include_usage` asks for. */
export const USAGE_CHUNK = {
  object: 'chat.completion.chunk',
  model: 'm',
  choices: [],
  usage: { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 },
}

/** Text of server-sent events: objects as data, strings as they are. */
export function events(...parts: (object | string)[]): string {
  return parts
    .map((part) => (typeof part === 'string' ? part : `data: ${JSON.stringify(part)}\n\n`))
    .join('')
}

export const DONE = 'data: [DONE]\n\n'

/** A whole streamed answer, as vLLM sends it. */
export function streamed(content: string): string {
  const role = delta({ role: 'assistant', content: '' })
  return events(role, delta({ content }), delta({}, 'stop'), USAGE_CHUNK, DONE)
}

export function beginStream(response: ServerResponse): ServerResponse {
  response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
  return response
}

/** Answers as a healthy server: streamed where that is asked for. */
export function answerWell(request: Seen, response: ServerResponse): void {
  answerWith(request, response, '4')
}

export function answerWith(request: Seen, response: ServerResponse, content: string): void {
  const body = JSON.parse(request.body) as { stream?: boolean }
  if (body.stream) beginStream(response).end(streamed(content))
  else json(response, chat(content))
}

/** The text of the last message of a chat request. */
export function lastMessage({ body }: Seen): string {
  const { messages } = JSON.parse(body) as { messages: { content: string }[] }
  return messages.at(-1)!.content
}
