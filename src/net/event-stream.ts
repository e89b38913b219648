import { StringDecoder } from 'node:string_decoder'
import { createParser, type EventSourceParser } from 'eventsource-parser'

/** Reads server-sent events from bytes, wherever the chunks are cut. */
export class EventStream {
  /** `data: [DONE]` came. */
  done = false
  #decoder = new StringDecoder('utf8')
  #parser: EventSourceParser

  /** @param onData gets the data of each event but the closing `[DONE]` */
  constructor(onData: (data: string) => void) {
    this.#parser = createParser({
      onEvent: ({ data }) => {
        if (data === '[DONE]') this.done = true
        else onData(data)
      },
    })
  }

  feed(chunk: Buffer): void {
    this.#parser.feed(this.#decoder.write(chunk))
  }

  /** Reads what is left; some servers leave out the last blank line. */
  end(): void {
    this.#parser.feed(`${this.#decoder.end()}\n\n`)
  }
}
