/** The shapes that providers and trainers take; the words of `--as`. */
export const RECORD_FORMS = ['responses', 'batch-input', 'batch-output', 'messages'] as const
export type RecordForm = (typeof RECORD_FORMS)[number]

/** What is wrong with a record's shape. */
export interface FormFinding {
  code: string
  message: string
}

/** OpenAI's limits for a batch file (its Batch API reference). */
const BATCH_LINES = 50_000
const BATCH_BYTES = 200_000_000
const BATCH_URLS = [
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/v1/responses',
  '/v1/moderations',
]

type Json = Record<string, unknown>

/** Checks records one after the other against one form; keeps the ids and sizes of a batch. */
export class FormChecker {
  #form: RecordForm
  #ids = new Set<string>()
  #lines = 0
  #bytes = 0

  constructor(form: RecordForm) {
    this.#form = form
  }

  /**
   * What a provider or a trainer would refuse this record for.
   *
   * @param length of the line in bytes, its newline included
   */
  check(value: unknown, length: number): FormFinding[] {
    if (!isObject(value)) return [shape('the record is no object')]
    switch (this.#form) {
      case 'responses':
        return responseFindings(value)
      case 'messages':
        return messageFindings(value.messages, 'messages')
      case 'batch-output':
        return batchOutputFindings(value)
      case 'batch-input':
        return [...this.#batchLimits(length), ...this.#batchInput(value)]
    }
  }

  #batchLimits(length: number): FormFinding[] {
    const findings: FormFinding[] = []
    const before = this.#bytes
    this.#bytes += length
    if (++this.#lines === BATCH_LINES + 1) {
      findings.push({ code: 'too-many-lines', message: 'a batch file may have 50,000 lines' })
    }
    if (before <= BATCH_BYTES && this.#bytes > BATCH_BYTES) {
      findings.push({ code: 'too-large', message: 'a batch file may have 200 MB' })
    }
    return findings
  }

  #batchInput(line: Json): FormFinding[] {
    const findings: FormFinding[] = []
    const { custom_id: id, method, url, body } = line
    if (typeof id !== 'string' || id === '') findings.push(shape('custom_id is no text'))
    else if (this.#ids.has(id)) {
      findings.push({
        code: 'duplicate-id',
        message: `custom_id '${id}' stands in an earlier line`,
      })
    } else this.#ids.add(id)
    if (method !== 'POST') findings.push(shape('method is not POST'))
    if (typeof url !== 'string' || !BATCH_URLS.includes(url)) {
      findings.push(shape(`url is none of ${BATCH_URLS.join(', ')}`))
    }
    if (!isObject(body)) return [...findings, shape('body is no object')]
    if (typeof body.model !== 'string') findings.push(shape('body has no model'))
    if (body.stream === true) findings.push(shape('a batch request cannot be streamed'))
    return [...findings, ...batchBodyFindings(url, body)]
  }
}

function batchBodyFindings(url: unknown, body: Json): FormFinding[] {
  switch (url) {
    case '/v1/chat/completions':
      return conversationFindings(body.messages, 'body.messages', false)
    case '/v1/completions':
      return body.prompt === undefined ? [shape('body has no prompt')] : []
    case '/v1/embeddings':
    case '/v1/responses':
    case '/v1/moderations':
      return body.input === undefined ? [shape('body has no input')] : []
    default:
      return []
  }
}

function responseFindings(record: Json): FormFinding[] {
  const findings: FormFinding[] = []
  const { id, status } = record
  const named = (typeof id === 'string' && id !== '') || typeof id === 'number'
  if (!named) findings.push(shape('id is neither a text nor a number'))
  if (status !== 'success')
    findings.push(shape(`status is ${JSON.stringify(status)}, not "success"`))
  return [...findings, ...messageFindings(record.conversations, 'conversations')]
}

/** A conversation to train on: it ends with the assistant. */
function messageFindings(messages: unknown, name: string): FormFinding[] {
  return conversationFindings(messages, name, true)
}

/**
 * Roles in order (a system message first, then turns of user and assistant, tools behind the calls
 * of an assistant), and no empty content.
 */
function conversationFindings(messages: unknown, name: string, answered: boolean): FormFinding[] {
  if (!Array.isArray(messages) || messages.length === 0) {
    return [shape(`${name} is no array with something in it`)]
  }
  const findings: FormFinding[] = []
  let previous: Json | undefined
  for (const [index, message] of (messages as unknown[]).entries()) {
    const place = `${name}[${index}]`
    if (!isObject(message)) return [...findings, shape(`${place} is no object`)]
    findings.push(...roleFindings(message, previous, place), ...contentFindings(message, place))
    previous = message
  }
  const roles = messages.map((message: Json) => message.role)
  if (answered && !roles.includes('assistant'))
    findings.push(shape(`${name} has no assistant turn`))
  else if (answered && roles.at(-1) !== 'assistant') {
    findings.push(shape(`${name} does not end with the assistant`))
  }
  return findings
}

/** Which roles may stand before a role; undefined is the beginning. */
const BEFORE: Record<string, readonly (string | undefined)[]> = {
  system: [undefined],
  developer: [undefined, 'system'],
  user: [undefined, 'system', 'developer', 'assistant'],
  assistant: ['user', 'tool', 'system', 'developer'],
  tool: ['assistant', 'tool'],
}

function roleFindings(message: Json, previous: Json | undefined, place: string): FormFinding[] {
  const { role } = message
  const allowed = typeof role === 'string' ? BEFORE[role] : undefined
  if (allowed === undefined) return [shape(`${place} has an unknown role: ${JSON.stringify(role)}`)]
  const before = previous?.role as string | undefined
  if (allowed.includes(before)) return []
  return [shape(`${place}: ${String(role)} may not follow ${before ?? 'the beginning'}`)]
}

function contentFindings({ role, content, tool_calls: calls }: Json, place: string): FormFinding[] {
  const hasCalls = role === 'assistant' && Array.isArray(calls) && calls.length > 0
  const empty = content === undefined || content === null || content === ''
  if ((empty && !hasCalls) || (Array.isArray(content) && content.length === 0)) {
    return [shape(`${place} has no content`)]
  }
  const known = empty || typeof content === 'string' || Array.isArray(content)
  return known ? [] : [shape(`${place} has a content that is neither text nor parts`)]
}

function batchOutputFindings(line: Json): FormFinding[] {
  const findings: FormFinding[] = []
  const { id, custom_id: customId, response, error } = line
  if (typeof id !== 'string') findings.push(shape('id is no text'))
  if (typeof customId !== 'string') findings.push(shape('custom_id is no text'))
  if (error !== null && error !== undefined && !isObject(error) && typeof error !== 'string') {
    findings.push(shape('error is neither null, an object nor a text'))
  }
  if (response === null || response === undefined) {
    if (error === null || error === undefined) findings.push(shape('neither response nor error'))
    return findings
  }
  if (!isObject(response)) return [...findings, shape('response is no object')]
  if (typeof response.status_code !== 'number') {
    findings.push(shape('response.status_code is no number'))
  }
  return findings
}

function shape(message: string): FormFinding {
  return { code: 'shape', message }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
