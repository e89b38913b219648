import { hash } from 'node:crypto'
import { canonicalJson, canonicalString } from './canonical-json.ts'
import type { InputRecord } from './record.ts'

export type Endpoint = 'chat' | 'completions'

/** What all requests of a run have in common. */
export interface RequestSettings {
  endpoint: Endpoint
  model: string
  system: string | undefined
  stream: boolean
  /** Whether the reasoning of earlier turns goes into the context of later ones. */
  historyReasoning: 'drop' | 'keep'
  /** Sampling and other members of the body, as the text of JSON values by name. */
  parameters: ReadonlyMap<string, string>
}

/** One HTTP request: where it goes below the base URL, and its body. */
export interface ApiRequest {
  path: string
  body: string
  stream: boolean
}

const PATHS: Record<Endpoint, string> = { chat: '/chat/completions', completions: '/completions' }

/** The messages (or other asks) of a record as they are sent at first, each a JSON token. */
export function openingMessages(record: InputRecord, settings: RequestSettings): string[] {
  const system = systemMessages(record, settings)
  switch (record.shape) {
    case 'messages': {
      const inner = record.asks[0]!.trim().slice(1, -1).trim()
      return beginsWithSystem(record.asks[0]!) ? [inner] : [...system, inner]
    }
    case 'turns':
      return [...system, userMessage(record.asks[0]!)]
    default:
      return [...system, userMessage(record.asks[0]!)]
  }
}

/** A user's message around a JSON string token. */
export function userMessage(token: string): string {
  return `{"role":"user","content":${token}}`
}

/** The request for a conversation so far. */
export function chatRequest(
  record: InputRecord,
  settings: RequestSettings,
  messages: readonly string[],
): ApiRequest {
  return apiRequest(record, settings, `"messages":[${messages.join(',')}]`)
}

/** The request for a plain prompt: text or token ids, to the completions endpoint. */
export function completionRequest(record: InputRecord, settings: RequestSettings): ApiRequest {
  return apiRequest(record, settings, `"prompt":${record.asks[0]}`)
}

/** The request of a batch line: its body as it stands, never streamed. */
export function batchRequest(record: InputRecord): ApiRequest {
  return { path: record.path, body: record.asks[0]!, stream: false }
}

function apiRequest(record: InputRecord, settings: RequestSettings, ask: string): ApiRequest {
  const stream = settings.stream ? ',"stream":true,"stream_options":{"include_usage":true}' : ''
  const body = `{${members(record, settings, ask).join(',')}${stream}}`
  return { path: PATHS[settings.endpoint], body, stream: settings.stream }
}

function members(record: InputRecord, settings: RequestSettings, ask: string): string[] {
  const all = [`"model":${JSON.stringify(settings.model)}`, ask]
  for (const [name, value] of settings.parameters) {
    if (!record.sent.has(name)) all.push(`${JSON.stringify(name)}:${value}`)
  }
  for (const [name, value] of record.sent) all.push(`${JSON.stringify(name)}:${value}`)
  return all
}

/**
 * 16 hex digits of the SHA-256 over what a record asks: the request body with sorted keys and
 * numbers as written, without `stream` and `stream_options`; of `turns`, all user turns. Two answers
 * to the same key with different hashes answer different questions.
 */
export function requestHash(record: InputRecord, settings: RequestSettings): string {
  return hash('sha256', hashedText(record, settings), 'hex').slice(0, 16)
}

function hashedText(record: InputRecord, settings: RequestSettings): string {
  if (record.shape === 'batch') return canonicalJson(record.asks[0]!, ['stream', 'stream_options'])
  const ask =
    settings.endpoint === 'completions'
      ? canonicalJson(record.asks[0]!)
      : `[${hashedMessages(record, settings).join(',')}]`
  if (record.sent.size > 0) return bodyAround(ask, record, settings)
  const { before, after } = frameOf(settings)
  return before + ask + after
}

/** The canonical body with what is asked in its place among the sorted members. */
function bodyAround(
  ask: string,
  record: InputRecord | undefined,
  settings: RequestSettings,
): string {
  const members = new Map([['model', JSON.stringify(settings.model)]])
  for (const [name, value] of settings.parameters) members.set(name, canonicalJson(value))
  for (const [name, value] of record?.sent ?? []) members.set(name, canonicalJson(value))
  members.set(askName(settings), ask)
  const names = [...members.keys()].sort()
  return `{${names.map((name) => `${JSON.stringify(name)}:${members.get(name)}`).join(',')}}`
}

function askName({ endpoint }: RequestSettings): string {
  return endpoint === 'completions' ? 'prompt' : 'messages'
}

/** What surrounds the ask in the bodies of a run, made once for its settings. */
const frames = new WeakMap<RequestSettings, { before: string; after: string }>()

function frameOf(settings: RequestSettings): { before: string; after: string } {
  let frame = frames.get(settings)
  if (frame === undefined) {
    const whole = bodyAround('', undefined, settings)
    const name = `${JSON.stringify(askName(settings))}:`
    // The member with nothing behind its colon: no value that is JSON can look so.
    const end = [`${name},`, `${name}}`].map((form) => whole.indexOf(form)).find((at) => at >= 0)!
    frame = { before: whole.slice(0, end + name.length), after: whole.slice(end + name.length) }
    frames.set(settings, frame)
  }
  return frame
}

/** The messages of the first request and the user's later turns, each in canonical spelling. */
function hashedMessages(record: InputRecord, settings: RequestSettings): string[] {
  if (record.shape === 'messages') {
    const messages = `[${openingMessages(record, settings).join(',')}]`
    return [canonicalJson(messages).slice(1, -1)]
  }
  const system = systemMessages(record, settings)
  const asked = record.asks.map((token) => `{"content":${canonicalString(token)},"role":"user"}`)
  return [...system.map((message) => canonicalJson(message)), ...asked]
}

/** The record's own system message, else that of the run, if any. */
function systemMessages(record: InputRecord, settings: RequestSettings): string[] {
  const run = settings.system === undefined ? undefined : JSON.stringify(settings.system)
  const token = record.system ?? run
  return token === undefined ? [] : [`{"role":"system","content":${token}}`]
}

function beginsWithSystem(messages: string): boolean {
  const [first] = JSON.parse(messages) as { role?: unknown }[]
  return first?.role === 'system' || first?.role === 'developer'
}
