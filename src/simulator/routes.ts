import type { IncomingMessage, ServerResponse } from 'node:http'
import { ApiError, badRequest, engineDead, notFound } from './api-error.ts'
import { Exchange } from './exchange.ts'
import { renderMetrics } from './metrics.ts'
import { hashText, uniform } from './random.ts'
import { reply, replyError, replyJson } from './reply.ts'
import { asBody, checkModel } from './request.ts'
import { countPromptTokens } from './text.ts'
import type { World } from './world.ts'

type Route = (world: World, request: IncomingMessage, response: ServerResponse) => void

/** What `GET /version` says: the vLLM whose behaviour this follows. */
const VLLM_VERSION = '0.12.0'

const EMBEDDING_DIMENSIONS = 16

const ROUTES: Readonly<Record<string, Route>> = {
  'GET /health': (_world, _request, response) => reply(response, 200, 'text/plain', ''),
  'GET /ping': (_world, _request, response) => reply(response, 200, 'text/plain', ''),
  'GET /version': (_world, _request, response) => replyJson(response, { version: VLLM_VERSION }),
  'GET /stats': (world, _request, response) => replyJson(response, world.snapshot()),
  'GET /metrics': (world, _request, response) => {
    world.engine.refresh()
    const text = renderMetrics(world.settings.model, world.engine.scheduler, world.metrics)
    reply(response, 200, 'text/plain; version=0.0.4; charset=utf-8', text)
  },
  'GET /v1/models': (world, request, response) => {
    world.authorize(request)
    replyJson(response, listModels(world))
  },
  'POST /v1/chat/completions': generation('chat'),
  'POST /v1/completions': generation('completion'),
  'POST /v1/responses': generation('response'),
  'POST /v1/embeddings': (world, request, response) => {
    const exchange = new Exchange(world, request, response)
    void exchange.serve((body) => replyJson(response, embed(body, world)))
  },
}

function generation(endpoint: 'chat' | 'completion' | 'response'): Route {
  return (world, request, response) => {
    const exchange = new Exchange(world, request, response)
    void exchange.serve((body) => exchange.generate(endpoint, body))
  }
}

/** Routes that tell of the simulator itself; they answer while the engine is dead. */
const SICK_ROUTES = ['GET /stats', 'GET /metrics', 'GET /version']

/** Answers one HTTP request. */
export function route(world: World, request: IncomingMessage, response: ServerResponse): void {
  const path = request.url!.split('?', 1)[0]!
  const name = `${request.method} ${path}`
  try {
    if (world.sick && !SICK_ROUTES.includes(name) && !name.startsWith('POST '))
      throw engineDead(503)
    const handler = Object.hasOwn(ROUTES, name) ? ROUTES[name]! : undefined
    if (!handler) throw notFound()
    handler(world, request, response)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    replyError(response, error)
  }
}

function listModels({ settings }: World): object {
  const model = {
    id: settings.model,
    object: 'model',
    created: Math.floor(Date.now() / 1000),
    owned_by: 'vllm',
    root: settings.model,
    parent: null,
    max_model_len: settings.maxModelLen,
  }
  return { object: 'list', data: [model] }
}

/** Vectors that depend on the text alone, with components in [-1, 1). */
function embed(value: unknown, { settings }: World): object {
  const body = asBody(value)
  checkModel(body, settings)
  const { input } = body
  if (input === undefined || input === null) throw badRequest('input is required', 'input')
  const texts = typeof input === 'string' || isTokenIds(input) ? [input] : input
  if (!Array.isArray(texts)) throw badRequest('input must be texts or token ids', 'input')
  let tokens = 0
  const data = texts.map((item: unknown, index) => {
    const text = typeof item === 'string' ? item : JSON.stringify(item)
    tokens += Array.isArray(item) ? item.length : countPromptTokens(text)
    const seed = hashText(text, settings.seed)
    const embedding = Array.from(
      { length: EMBEDDING_DIMENSIONS },
      (_, i) => 2 * uniform(seed, i) - 1,
    )
    return { index, object: 'embedding', embedding }
  })
  const usage = { prompt_tokens: tokens, total_tokens: tokens, completion_tokens: 0 }
  return { object: 'list', model: settings.model, data, usage }
}

function isTokenIds(input: unknown): boolean {
  return Array.isArray(input) && typeof input[0] === 'number'
}
