import { StringDecoder } from 'node:string_decoder'
import { createParser, type EventSourceParser } from 'eventsource-parser'
import { parseObject } from '../core/error-body.ts'

/** Reads server-sent events from bytes, wherever the chunks are cut. */
export class EventStream {
  /** `data: [DONE]` came. */
  done = false
  /** What was fed ends with the blank line of an event: nothing is pending. */
  isBetween = false
  #decoder = new StringDecoder('utf8')
  #parser: EventSourceParser
  #endsLine = false
  /** What is read now has no blank line of its own. */
  #atEnd = false

  /**
   * @param onData gets the data of each event before the closing `[DONE]` that has some
   * @param onError gets that of events named `error`
   */
  constructor(onData: (data: string) => void, onError: (data: string) => void) {
    this.#parser = createParser({
      onEvent: ({ data, event }) => {
        if (this.done || (this.#atEnd && !this.#isWhole(data, event))) return
        const text = data.trim()
        if (text === '[DONE]') this.done = true
        else if (event === 'error') onError(data)
        else if (text !== '') onData(data)
      },
    })
  }

  feed(chunk: Buffer): void {
    const text = this.#decoder.write(chunk)
    this.#parser.feed(text)
    this.isBetween = text.endsWith('\n\n')
    this.#endsLine = text.endsWith('\n')
  }

  /**
   * Reads what is left. An event without its blank line is dropped, as the specification of
   * server-sent events has it, unless its data is whole: some servers leave that line out.
   */
  end(): void {
    this.#atEnd = true
    this.#parser.feed(`${this.#decoder.end()}\n\n`)
  }

  /** An object ends with itself, so that nothing of it can be lost; a text needs the end of its line. */
  #isWhole(data: string, event: string | undefined): boolean {
    if (event === 'error' && this.#endsLine) return true
    return data.trim() === '[DONE]' || parseObject(data) !== undefined
  }
}
