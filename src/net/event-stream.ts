import { StringDecoder } from 'node:string_decoder'
import { createParser, type EventSourceParser } from 'eventsource-parser'

/** Reads server-sent events from bytes, wherever the chunks are cut. */
export class EventStream {
  /** `data: [DONE]` came. */
  done = false
  /** What was fed ends with the blank line of an event: nothing is pending. */
  isBetween = false
  #decoder = new StringDecoder('utf8')
  #parser: EventSourceParser

  /**
   * @param onData gets the data of each event before the closing `[DONE]`
   * @param onError gets that of events named `error`
   */
  constructor(onData: (data: string) => void, onError: (data: string) => void) {
    this.#parser = createParser({
      onEvent: ({ data, event }) => {
        if (this.done) return
        if (data === '[DONE]') this.done = true
        else if (event === 'error') onError(data)
        else onData(data)
      },
    })
  }

  feed(chunk: Buffer): void {
    const text = this.#decoder.write(chunk)
    this.#parser.feed(text)
    this.isBetween = text.endsWith('\n\n')
  }

  /** Reads what is left; some servers leave out the last blank line. */
  end(): void {
    this.#parser.feed(`${this.#decoder.end()}\n\n`)
  }
}
