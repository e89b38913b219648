import { randomUUID } from 'node:crypto'
import type { Answer, Usage } from './answer.ts'
import type { Failure } from './failure.ts'
import type { InputRecord } from './record.ts'
import type { SourceLine } from './record-error.ts'

/** What is recorded of the way an answer came. */
export interface Provenance {
  attempts: number
  /** Milliseconds since 1970. */
  startedAt: number
  /** Milliseconds; undefined without streaming. */
  firstTokenMs: number | undefined
  totalMs: number
  requestHash: string
  /** Each turn of a conversation that was asked turn by turn. */
  turns: readonly TurnProvenance[]
}

export interface TurnProvenance {
  finish_reason: string | null
  usage?: Usage
  attempts: number
  first_token_ms?: number
  total_ms: number
}

/** The assistant's message as it stands in `conversations`, reasoning under its one name. */
export function assistantMessage(answer: Answer): string {
  const { content, reasoning, extra } = answer
  let message = `{"role":"assistant","content":${JSON.stringify(content)}`
  if (reasoning !== '') message += `,"reasoning_content":${JSON.stringify(reasoning)}`
  return `${message}${furtherMembers(extra)}}`
}

/** Members by name as the text that goes on in an object. */
function furtherMembers(values: Readonly<Record<string, unknown>>): string {
  let text = ''
  for (const name of Object.keys(values)) {
    text += `,${JSON.stringify(name)}:${JSON.stringify(values[name])}`
  }
  return text
}

/**
 * The output line of an answered record, newline included.
 *
 * @param messages the conversation, each message as JSON text: those sent byte for byte
 */
export function chatLine(
  record: InputRecord,
  messages: readonly string[],
  answer: Answer,
  provenance: Provenance,
): string {
  return successLine(record, `"conversations":[${messages.join(',')}]`, answer, provenance)
}

/** The output line of an answered plain prompt, newline included. */
export function completionLine(
  record: InputRecord,
  answer: Answer,
  provenance: Provenance,
): string {
  const text = JSON.stringify(answer.content ?? '')
  return successLine(record, `"prompt":${record.asks[0]},"text":${text}`, answer, provenance)
}

function successLine(
  record: InputRecord,
  what: string,
  answer: Answer,
  provenance: Provenance,
): string {
  const { finishReason, model, usage, beside } = answer
  const { attempts, turns, requestHash } = provenance
  let line =
    `{"id":${record.idToken},"status":"success",${what}` +
    `,"finish_reason":${JSON.stringify(finishReason)}`
  if (model !== undefined) line += `,"model":${JSON.stringify(model)}`
  if (usage !== undefined) line += `,"usage":${JSON.stringify(usage)}`
  line += `,"attempts":${attempts},"timing":${timing(provenance)}${furtherMembers(beside)}`
  if (turns.length > 1) line += `,"turns":${JSON.stringify(turns)}`
  return `${line},"request_hash":"${requestHash}","input":${record.rest}}\n`
}

function timing({ startedAt, firstTokenMs, totalMs }: Provenance): string {
  const start = `"started_at":"${new Date(startedAt).toISOString()}"`
  const first = firstTokenMs === undefined ? '' : `,"first_token_ms":${Math.round(firstTokenMs)}`
  return `{${start}${first},"total_ms":${Math.round(totalMs)}}`
}

/**
 * The output line of a batch line: the server's body byte for byte, CR and LF between its tokens as
 * spaces (inside a string JSON allows neither).
 */
export function batchLine(
  record: InputRecord,
  status: number,
  requestId: string | undefined,
  body: string,
): string {
  const id = `batch_req_${randomUUID().replaceAll('-', '')}`
  const response =
    `{"status_code":${status},"request_id":${JSON.stringify(requestId ?? '')},` +
    `"body":${body.trim().replace(/[\r\n]/g, ' ')}}`
  return `{"id":"${id}","custom_id":${record.idToken},"response":${response},"error":null}\n`
}

/** A record that failed for good. */
export interface FailedRecord {
  idToken: string
  failure: Failure
  attempts: number
  /** Those of them that asked for turns which were answered. */
  earlierAttempts?: number
  /** Milliseconds from the first attempt to the last. */
  elapsedMs: number
  /** Finished turns of a conversation, each message as JSON text. */
  finishedTurns: readonly string[]
  input: SourceLine
}

/** A line of the failures file, newline included; fanout-complete takes it as input again. */
export function failureLine(failed: FailedRecord): string {
  const { failure, attempts, elapsedMs, finishedTurns } = failed
  const error = JSON.stringify({
    code: failure.code,
    message: failure.detail ? `${failure.message} (${failure.detail})` : failure.message,
    http_status: failure.httpStatus ?? null,
    retryable: failure.retryable,
    attempts,
    elapsed_ms: Math.round(elapsedMs),
  })
  const partial = JSON.stringify(failure.partial ?? {})
  const turns = finishedTurns.length > 0 ? `"conversations":[${finishedTurns.join(',')}]` : ''
  const separator = turns !== '' && partial !== '{}' ? ',' : ''
  return (
    `{"id":${failed.idToken},"status":"error","error":${error},` +
    `"partial":${partial.slice(0, -1)}${separator}${turns}},${inputMember(failed.input)}}\n`
  )
}

function inputMember(input: SourceLine): string {
  if ('json' in input) return `"input":${input.json}`
  if ('text' in input) return `"input_text":${JSON.stringify(input.text)}`
  return `"input_base64":"${input.base64}"`
}

/** The usages of several turns added up, member by member. */
export function addUsage(a: Usage | undefined, b: Usage | undefined): Usage | undefined {
  if (a === undefined || b === undefined) return a ?? b
  const sum: Usage = { ...a }
  for (const [name, value] of Object.entries(b)) {
    const old = sum[name]
    if (typeof value === 'number' && typeof old === 'number') sum[name] = old + value
    else if (isUsage(value) && isUsage(old)) sum[name] = addUsage(old, value)
    else sum[name] ??= value
  }
  return sum
}

function isUsage(value: unknown): value is Usage {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
