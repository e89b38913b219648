import { parseCount, parseNumber } from '../../core/quantity.ts'
import { ToolError, usageError } from '../../core/tool-error.ts'
import type { Accounting } from './accounting.ts'
import type { Stop } from './stop.ts'

/** A share is only judged once so many records are done. */
const ENOUGH_TO_JUDGE = 20

/** Ends a run of which too much fails: `--halt-on-failures N` or `P%`. */
export class Halt {
  #most = Number.POSITIVE_INFINITY
  #share = Number.POSITIVE_INFINITY
  #accounting: Accounting
  #stop: Stop

  /** @throws ToolError `usage` where the option is neither a number nor a percentage */
  constructor(option: string | undefined, accounting: Accounting, stop: Stop) {
    this.#accounting = accounting
    this.#stop = stop
    if (option === undefined) return
    const percent = option.endsWith('%') ? parseNumber(option.slice(0, -1)) : undefined
    const most = parseCount(option)
    if (percent !== undefined && percent > 0) this.#share = percent / 100
    else if (most !== undefined && most > 0) this.#most = most
    else throw usageError(`--halt-on-failures takes a number or a percentage, not '${option}'`)
  }

  /** Looks at the counts after a failure. */
  check(): void {
    const { failed, answered } = this.#accounting
    const done = failed + answered
    const tooMany = failed >= this.#most
    const tooLarge = done >= ENOUGH_TO_JUDGE && failed / done >= this.#share
    if (!tooMany && !tooLarge) return
    const message = `${failed} of ${done} records failed (--halt-on-failures)`
    this.#stop.endSoon(new ToolError('halted', message, { exitCode: 1 }))
  }
}
