import type { Context } from '../../cli/command.ts'

/** Milliseconds between two pictures of the line. */
const REDRAW_EVERY = 200

/** A line on the terminal that tells how far a run is; nothing where there is no terminal. */
export class CounterLine {
  #context: Context
  #text: () => string
  #timer: NodeJS.Timeout | undefined

  constructor(context: Context, text: () => string) {
    this.#context = context
    this.#text = text
    if (context.terminal === undefined || context.report.quiet) return
    this.#timer = setInterval(() => this.#draw(), REDRAW_EVERY).unref()
    context.report.setLive({ clear: () => this.#clear(), draw: () => this.#draw() })
  }

  stop(): void {
    if (this.#timer === undefined) return
    clearInterval(this.#timer)
    this.#clear()
    this.#context.report.setLive(undefined)
  }

  #clear(): void {
    this.#context.report.raw('\r\u001b[K')
  }

  #draw(): void {
    const width = Math.max(20, (this.#context.terminal?.columns ?? 80) - 1)
    this.#context.report.raw(`\r${this.#text().slice(0, width)}\u001b[K`)
  }
}
