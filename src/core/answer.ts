import {
  BESIDE,
  type Body,
  type Choice,
  firstChoice,
  hasFinished,
  indexOf,
  plainName,
  REASONING_NAMES,
} from './choice.ts'
import { merged, mergedParts, withoutIndices } from './delta-merge.ts'
import { errorBeside, errorEvent, errorIn, excerpt, parseObject } from './error-body.ts'
import { EventTemplate } from './event-template.ts'

/** What a server said in reply to one request, put together from a stream or from one body. */
export interface Answer {
  /** A text, or parts where the server sends such. */
  content: string | null | unknown[]
  reasoning: string
  finishReason: string | null
  /** The server's model name and usage, as they came. */
  model: string | undefined
  usage: Usage | undefined
  /** Tool calls, refusal and whatever else the message held, by name. */
  extra: Record<string, unknown>
  /** What stands beside the message: logprobs, and token ids where they were asked for. */
  beside: Record<string, unknown>
}

export type Usage = Record<string, unknown>

/** Members of a message that have a place of their own in an answer. */
const PLACED = new Set<string>(['role', 'content', ...REASONING_NAMES])

/** A server that changes more than the text in each event is read in full after so many templates. */
const MOST_FRUITLESS = 4

/** A reply that is none, though the server said 200: the code and what it is in words. */
export interface Flaw {
  code: 'no-choices' | 'in-band-error' | 'not-json' | 'no-finish' | 'aborted'
  message: string
}

const NO_CHOICES: Flaw = { code: 'no-choices', message: 'the answer has no choices' }
const NO_FINISH: Flaw = {
  code: 'no-finish',
  message: 'the answer ends without a finish_reason: it was cut',
}
const NO_EVENTS: Flaw = {
  code: 'no-finish',
  message: 'the stream ends without a single choice: it holds no events, or it was cut',
}

/** Reads a whole, not streamed, JSON body. */
export function answerFromBody(text: string): Answer | Flaw {
  return answerOf(parseObject(text), text)
}

/**
 * The same of a body that is parsed already.
 *
 * @param body undefined where the text is no JSON object
 */
export function answerOf(body: Body | undefined, text: string): Answer | Flaw {
  if (body === undefined)
    return { code: 'not-json', message: `the answer is no JSON: ${excerpt(text)}` }
  const error = errorIn(body)
  if (error !== undefined) return error
  const choice = firstChoice(body)
  if (choice === undefined) return errorBeside(body) ?? NO_CHOICES
  const collector = new AnswerCollector()
  collector.take(choice.message ?? {}, choice)
  collector.model = typeof body.model === 'string' ? body.model : undefined
  collector.usage = body.usage ?? undefined
  collector.besideOf(body)
  return collector.finish(false)
}

/** Puts an answer together from the chunks of a stream. */
export class AnswerCollector {
  model: string | undefined
  usage: Usage | undefined
  /** Whether a choice has said something: a role alone is nothing. */
  started = false
  flaw: Flaw | undefined
  /** Pieces of content and reasoning that came; servers send one or more tokens in each. */
  pieces = 0
  #content = ''
  #hasContent = false
  #reasoning = ''
  #finishReason: string | null = null
  #choices = 0
  /** Of the choice that is collected: the least so far. */
  #index = Number.POSITIVE_INFINITY
  /** What the server said where choices should stand. */
  #instead: Flaw | undefined
  #parts: unknown[] | undefined
  #template: EventTemplate | undefined
  #fruitless = 0
  #extra: Record<string, unknown> = {}
  #beside: Record<string, unknown> = {}

  /** Takes the data of one event. */
  event(data: string): void {
    const text = this.#template?.text(data)
    if (text === undefined) return this.#parsed(data)
    this.#fruitless = 0
    this.#append(this.#template!.name, text)
  }

  /** Takes the data of an event named `error`: JSON of any form, or a text. */
  error(data: string): void {
    this.#breaks(errorEvent(data))
  }

  /** What breaks after the finish_reason costs no answer. */
  #breaks(flaw: Flaw): void {
    if (!this.complete) this.flaw ??= flaw
  }

  /**
   * Takes a read of the connection that begins and ends with an event.
   *
   * @returns false where it is not one plain event: it must be split first
   */
  read(bytes: Buffer): boolean {
    const text = this.#template?.textOfRead(bytes)
    if (text === undefined) return false
    this.#fruitless = 0
    this.#append(this.#template!.name, text)
    return true
  }

  #parsed(data: string): void {
    const body: Body | undefined = parseObject(data)
    if (body === undefined) {
      const message = `an event of the stream is no JSON: ${excerpt(data)}`
      return this.#breaks({ code: 'not-json', message })
    }
    const error = errorIn(body)
    if (error !== undefined) this.#breaks(error)
    if (typeof body.model === 'string') this.model = body.model
    if (body.usage) this.usage = body.usage
    this.besideOf(body)
    const choice = firstChoice(body)
    if (choice === undefined) {
      this.#instead ??= errorBeside(body)
      return
    }
    const index = indexOf(choice)
    if (index > this.#index) return
    if (index < this.#index) this.#begin(index)
    this.take(choice.delta ?? choice.message ?? {}, choice)
    const name = plainName(body)
    if (name === undefined || this.#fruitless > MOST_FRUITLESS) return
    this.#fruitless++
    const text = choice.delta?.[name] as string
    const read = (other: string): string | undefined => {
      const parsed: Body | undefined = parseObject(other)
      if (parsed === undefined || plainName(parsed) !== name) return undefined
      return (parsed.choices as Choice[])[0]?.delta?.[name] as string
    }
    this.#template = EventTemplate.of({ data, name, text, read })
  }

  /** The choice with this index is the answer; what came of one behind it is dropped. */
  #begin(index: number): void {
    this.#index = index
    this.#content = this.#reasoning = ''
    this.#hasContent = false
    this.#finishReason = null
    this.#parts = this.#template = undefined
    this.#extra = {}
    const { prompt_token_ids: ids } = this.#beside
    this.#beside = ids === undefined ? {} : { prompt_token_ids: ids }
  }

  #append(name: string, text: string): void {
    if (name === 'content') {
      this.#hasContent = true
      this.#content += text
    } else this.#reasoning += text
    if (text !== '') this.#heard()
  }

  /** Takes a message, whole or a delta of it. */
  take(message: Record<string, unknown>, choice: Choice): void {
    this.#choices++
    const content = message.content ?? choice.text
    if (typeof content === 'string') {
      this.#hasContent = true
      this.#content += content
      if (content !== '') this.#heard()
    } else if (Array.isArray(content)) {
      this.#parts = mergedParts(this.#parts ?? [], content)
      if (content.length > 0) this.#heard()
    }
    for (const name of REASONING_NAMES) {
      const reasoning = message[name]
      if (typeof reasoning !== 'string') continue
      if (reasoning !== '') this.#heard()
      this.#reasoning += reasoning
      // A server that sends it under two names sends the same text twice.
      break
    }
    this.#takeOthers(message)
    if (hasFinished(choice)) this.#finishReason = choice.finish_reason
    for (const name of BESIDE) {
      const value = choice[name]
      if (value === undefined || value === null) continue
      this.#beside[name] = merged(this.#beside[name], value)
    }
  }

  /** Tool calls, refusal and the like; hundreds of thousands of deltas a second have none. */
  #takeOthers(message: Record<string, unknown>): void {
    for (const name in message) {
      if (PLACED.has(name)) continue
      const value = message[name]
      if (value === null) continue
      this.#extra[name] = merged(this.#extra[name], value)
      if (name === 'tool_calls') this.started = true
    }
  }

  /** Takes what a body, or an event, holds beside its choices. */
  besideOf({ prompt_token_ids: ids }: Body): void {
    if (Array.isArray(ids)) this.#beside.prompt_token_ids = ids
  }

  /**
   * The server has said how the answer ended: nothing that matters can still be missing. After
   * `error` the event that tells of it may follow.
   */
  get complete(): boolean {
    const reason = this.#finishReason
    return this.flaw === undefined && reason !== null && reason !== 'abort' && reason !== 'error'
  }

  /** What came until now, for the record of a failure. */
  get partial(): { reasoning_content: string; content: string } {
    return { reasoning_content: this.#reasoning, content: this.#content }
  }

  /**
   * The answer, or what is wrong with it as a whole.
   *
   * @param streamed a stream must say why it ends, or it was cut; a whole body cannot be
   * @param closed nothing was to follow, as `[DONE]` says of a stream
   */
  finish(streamed: boolean, closed = true): Answer | Flaw {
    if (this.flaw !== undefined) return this.flaw
    if (this.#choices === 0) return this.#instead ?? (closed ? NO_CHOICES : NO_EVENTS)
    if (streamed && this.#finishReason === null) return NO_FINISH
    if (this.#finishReason === 'abort') {
      return { code: 'aborted', message: 'the server aborted the answer (finish_reason abort)' }
    }
    return {
      content: this.#parts ?? (this.#hasContent ? this.#content : null),
      reasoning: this.#reasoning,
      finishReason: this.#finishReason,
      model: this.model,
      usage: this.usage,
      extra: this.#withoutIndices(),
      beside: this.#beside,
    }
  }

  #withoutIndices(): Record<string, unknown> {
    if (this.#extra.tool_calls === undefined) return this.#extra
    const { tool_calls: calls, ...others } = this.#extra
    return { ...others, tool_calls: withoutIndices(calls) }
  }

  #heard(): void {
    this.started = true
    this.pieces++
  }
}

/** Whether a finished answer is one. */
export function isFlaw(answer: object): answer is Flaw {
  return 'code' in answer
}
