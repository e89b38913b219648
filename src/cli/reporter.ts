import { printable } from '../core/printable.ts'
import type { Place } from '../core/tool-error.ts'

export { printable }

/** The one place that writes messages: GNU's form, standard error, nothing raw from data. */
export class Reporter {
  quiet = false
  verbose = false
  #name: string
  #write: (text: string) => void
  #live: { clear(): void; draw(): void } | undefined

  /** @param name the binary's name, which begins every message */
  constructor(name: string, write: (text: string) => void) {
    this.#name = name
    this.#write = write
  }

  /** Something wrong with the data or the run; shown also with --quiet. */
  error(message: string, code?: string, place?: Place): void {
    this.line(`${this.#name}: ${placeText(place)}${printable(message)}${codeText(code)}`)
  }

  warning(message: string, code?: string, place?: Place): void {
    if (this.quiet) return
    this.line(`${this.#name}: ${placeText(place)}warning: ${printable(message)}${codeText(code)}`)
  }

  /** Counts and other news. */
  note(message: string): void {
    if (!this.quiet) this.line(`${this.#name}: ${printable(message)}`)
  }

  /** What only --verbose shows. */
  detail(message: string): void {
    if (this.verbose) this.line(`${this.#name}: ${printable(message)}`)
  }

  /** A line as it stands; a progress bar makes room for it. */
  line(text: string): void {
    this.#live?.clear()
    this.#write(`${text}\n`)
    this.#live?.draw()
  }

  /** Text without a line end of ours, for what redraws itself. */
  raw(text: string): void {
    this.#write(text)
  }

  /** Sets what is on the last line of the terminal and must give way to messages. */
  setLive(live: { clear(): void; draw(): void } | undefined): void {
    this.#live = live
  }
}

function placeText(place: Place | undefined): string {
  if (place === undefined) return ''
  const numbers = [place.line, place.column].filter((number) => number !== undefined)
  return `${[printable(place.file), ...numbers].join(':')}: `
}

function codeText(code: string | undefined): string {
  return code === undefined ? '' : ` [${code}]`
}
