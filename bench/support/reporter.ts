import { table } from './table.ts'

/** What a ratio should be; nothing fails where it is not. */
export type Target = { atLeast: number } | { atMost: number }

/** One line of the table: two figures of one run, and their ratio. */
export interface Row {
  what: string
  ours: string
  peer?: string
  ratio?: number
  /** Of the ratio. */
  target?: Target
  /** In place of a target of the ratio: the target in words, and whether it holds. */
  goal?: { text: string; holds: boolean }
}

const HEADINGS = ['what', 'ours', 'peer', 'ratio', 'target', 'holds']

/** Collects rows, and says on standard error what is going on. */
export class Reporter {
  #rows: string[][] = []

  /** Begins a benchmark. */
  begin(name: string, summary: string): void {
    process.stderr.write(`\n${name}: ${summary}\n`)
    this.#rows.push([`${name}: ${summary}`])
  }

  add(row: Row): void {
    const { what, ours, peer = '', ratio } = row
    const { text, verdict } = judged(row)
    const cells = [what, ours, peer, ratio === undefined ? '' : significant(ratio), text, verdict]
    this.#rows.push([`  ${cells[0]}`, ...cells.slice(1)])
    process.stderr.write(`  ${cells.filter((cell) => cell !== '').join(' | ')}\n`)
  }

  /** Says something that is no figure. */
  note(text: string): void {
    process.stderr.write(`  ${text}\n`)
  }

  /** Says that a peer or a figure is not to be had here. */
  skip(what: string, why: string): void {
    this.add({ what, ours: `SKIPPED: ${why}` })
  }

  /** The table of all that was measured. */
  text(): string {
    return table(HEADINGS, this.#rows)
  }
}

function judged({ ratio, target, goal }: Row): { text: string; verdict: string } {
  if (goal !== undefined) return { text: goal.text, verdict: goal.holds ? 'yes' : 'NO' }
  if (target === undefined || ratio === undefined) return { text: '', verdict: '' }
  if ('atLeast' in target) {
    const verdict = ratio >= target.atLeast ? 'yes' : 'NO'
    return { text: `>= ${significant(target.atLeast)}`, verdict }
  }
  return {
    text: `<= ${significant(target.atMost)}`,
    verdict: ratio <= target.atMost ? 'yes' : 'NO',
  }
}

/** Three digits that say something: 0.0556, 1.24, 17.3, 4,210. */
export function significant(value: number): string {
  if (value >= 100) return Math.round(value).toLocaleString('en')
  return String(Number(value.toPrecision(3)))
}
