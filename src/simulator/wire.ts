import { type Answer, contentText, type FinishReason, reasoningText, usageOf } from './answer.ts'
import type { ReasoningField } from './options.ts'
import type { Endpoint } from './request.ts'

/** What all parts of one answer have in common. */
export interface Head {
  readonly id: string
  /** Seconds since 1970. */
  readonly created: number
  readonly model: string
  readonly reasoningField: ReasoningField
}

/** A chunk around its text: `before TEXT after`, or `before TEXT between TEXT after`. */
export interface Frame {
  readonly before: string
  readonly between: string | undefined
  readonly after: string
}

/** The events of one streamed answer, with everything constant already in JSON. */
export interface ChunkTexts {
  /** Sent with the first token; empty where the endpoint has none. */
  readonly opening: string
  readonly reasoning: Frame
  readonly content: Frame
  finish(reason: FinishReason): string
  usage(answer: Answer): string
}

export const DONE = 'data: [DONE]\n\n'

export function event(data: string): string {
  return `data: ${data}\n\n`
}

/** Members that stand for `reasoning` under the names asked for, around the text as in `Frame`. */
const REASONING_NAMES: Readonly<Record<ReasoningField, readonly string[]>> = {
  reasoning: ['reasoning'],
  reasoning_content: ['reasoning_content'],
  both: ['reasoning', 'reasoning_content'],
}

function frame(start: string, names: readonly string[], end: string): Frame {
  const [first, second] = names
  return {
    before: `${start}"${first}":"`,
    between: second && `","${second}":"`,
    after: `"${end}`,
  }
}

/** The events of a chat completion. */
export function chatChunks(head: Head): ChunkTexts {
  const start = `${chunkStart(head, 'chat.completion.chunk')},"choices":[{"index":0,"delta":{`
  const end = '},"logprobs":null,"finish_reason":null}]}\n\n'
  return {
    opening: `${start}"role":"assistant","content":""${end}`,
    reasoning: frame(start, REASONING_NAMES[head.reasoningField], end),
    content: frame(start, ['content'], end),
    finish: (reason) =>
      `${start}},"logprobs":null,"finish_reason":${JSON.stringify(reason)},"stop_reason":null}]}\n\n`,
    usage: usageChunk(head, 'chat.completion.chunk'),
  }
}

/** The events of a text completion; it has no reasoning. */
export function completionChunks(head: Head): ChunkTexts {
  const start = `${chunkStart(head, 'text_completion')},"choices":[{"index":0,`
  const end = ',"logprobs":null,"finish_reason":null,"stop_reason":null}]}\n\n'
  const content = frame(start, ['text'], end)
  return {
    opening: '',
    reasoning: content,
    content,
    finish: (reason) =>
      `${start}"text":"","logprobs":null,"finish_reason":${JSON.stringify(reason)},"stop_reason":null}]}\n\n`,
    usage: usageChunk(head, 'text_completion'),
  }
}

function chunkStart({ id, created, model }: Head, object: string): string {
  const members = JSON.stringify({ id, object, created, model })
  return `data: ${members.slice(0, -1)}`
}

function usageChunk(head: Head, object: string): (answer: Answer) => string {
  return (answer) =>
    `${chunkStart(head, object)},"choices":[],"usage":${JSON.stringify(usageOf(answer))}}\n\n`
}

/** The body of an answer that is not streamed. */
export function wholeBody(endpoint: Endpoint, head: Head, answer: Answer): string {
  return JSON.stringify(BODIES[endpoint](head, answer))
}

const BODIES: Readonly<Record<Endpoint, (head: Head, answer: Answer) => object>> = {
  chat: ({ id, created, model, reasoningField }, answer) => {
    const reasoning = answer.reasoningTokens > 0 ? reasoningText(answer) : null
    const names = REASONING_NAMES[reasoningField]
    const message = {
      role: 'assistant',
      content: contentText(answer),
      refusal: null,
      tool_calls: [],
      ...Object.fromEntries(names.map((name) => [name, reasoning])),
    }
    const choice = choiceOf(answer, { message })
    const usage = usageOf(answer)
    return { id, object: 'chat.completion', created, model, choices: [choice], usage }
  },
  completion: ({ id, created, model }, answer) => {
    const choice = choiceOf(answer, { text: contentText(answer) })
    const usage = usageOf(answer)
    return { id, object: 'text_completion', created, model, choices: [choice], usage }
  },
  response: ({ id, created, model }, answer) => ({
    id,
    object: 'response',
    created_at: created,
    status: answer.finishReason === 'stop' ? 'completed' : 'incomplete',
    incomplete_details: answer.finishReason === 'length' ? { reason: 'max_output_tokens' } : null,
    model,
    output: responseOutput(id, answer),
    usage: {
      input_tokens: answer.promptTokens,
      output_tokens: answer.tokens,
      total_tokens: answer.promptTokens + answer.tokens,
      output_tokens_details: { reasoning_tokens: answer.reasoningTokens },
    },
  }),
}

function choiceOf(answer: Answer, text: object): object {
  return {
    index: 0,
    ...text,
    logprobs: null,
    finish_reason: answer.finishReason,
    stop_reason: null,
  }
}

function responseOutput(id: string, answer: Answer): object[] {
  const content = [{ type: 'output_text', text: contentText(answer), annotations: [] }]
  const message = {
    id: `msg_${id}`,
    type: 'message',
    role: 'assistant',
    status: 'completed',
    content,
  }
  if (answer.reasoningTokens === 0) return [message]
  const text = [{ type: 'reasoning_text', text: reasoningText(answer) }]
  return [{ id: `rs_${id}`, type: 'reasoning', summary: [], content: text }, message]
}
