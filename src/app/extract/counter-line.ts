import { barPicture } from '../../cli/bar.ts'
import type { Context } from '../../cli/command.ts'

/** Milliseconds between two pictures of the line. */
const REDRAW_EVERY = 200

/** A bar and counts on the terminal that tell how far a run is; nothing where there is no terminal. */
export class CounterLine {
  #context: Context
  #text: () => string
  #share: () => number | undefined
  #timer: NodeJS.Timeout | undefined

  /** @param share of the work that is done; without one there are counts alone */
  constructor(context: Context, text: () => string, share: () => number | undefined) {
    this.#context = context
    this.#text = text
    this.#share = share
  }

  /** Shows it from now on. */
  start(): void {
    const { terminal, report } = this.#context
    if (terminal === undefined || report.quiet || this.#timer !== undefined) return
    this.#timer = setInterval(() => this.#draw(), REDRAW_EVERY).unref()
    report.setLive({ clear: () => this.#clear(), draw: () => this.#draw() })
    this.#draw()
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
    const share = this.#share()
    const percent = share === undefined ? '' : `${Math.floor(share * 100)} %, `
    const text = `${percent}${this.#text()}`
    const bar = share === undefined ? '' : barPicture(share, width - text.length)
    this.#context.report.raw(`\r${(bar + text).slice(0, width)}\u001b[K`)
  }
}
