import { printable } from './printable.ts'
import { counted, formatDuration } from './quantity.ts'
import { percent } from './report-advice.ts'
import type { Distribution, Report, WhatIf } from './run-report.ts'
import type { TraceReport } from './trace-report.ts'

const BLOCKS = '▁▂▃▄▅▆▇█'
const SPARKS = 60
const BAR = 40

/** What a report is made of beside the answers. */
export interface FullReport extends Report {
  advice: string[]
  /** The object that fanout-complete --stats wrote. */
  stats?: Record<string, unknown>
  trace?: TraceReport
}

/** The report for a terminal. */
export function reportText(report: FullReport): string {
  const sections = [
    totals(report),
    overTime(report),
    ofDistribution('Total time', report.total_ms, formatDuration),
    ofDistribution('First token', report.first_token_ms, formatDuration),
    ofDistribution('Answer length', report.answer_tokens, (value) => `${Math.round(value)}`),
    failures(report),
    whatIf(report),
    stats(report),
    trace(report),
    next(report),
  ]
  const parts = sections.filter((lines) => lines.length > 0)
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

/** Counts by name in one line. */
export function counts(of: Record<string, number>): string {
  return Object.entries(of)
    .map(([name, count]) => `${printable(name)} ${count}`)
    .join(', ')
}

function totals(report: FullReport): string[] {
  const { records, answered, failed, invalid, seconds } = report
  const lines = [
    `Records        ${records}: ${answered} answered, ${failed} failed, ${invalid} invalid`,
  ]
  if (report.repeated > 0)
    lines.push(`Repeated       ${report.repeated} lines that were counted before, left out`)
  const also = Object.values(report.answered_later).reduce((sum, count) => sum + count, 0)
  if (also > 0)
    lines.push(
      `Also answered  ${also} that failed at another time: ${counts(report.answered_later)}`,
    )
  if (answered === 0) return lines
  lines.push(`Finish         ${counts(report.finish_reasons)}`)
  const share = (count: number): string => `${count} (${percent(count / answered)})`
  lines.push(
    `Cut, empty     ${share(report.cut_by_length)} cut by length, ${share(report.empty)} empty, ${share(report.retried)} retried`,
    `Tokens         ${tokenCounts(report)}`,
  )
  if (report.reasoning_share !== null)
    lines.push(`Reasoning      ${percent(report.reasoning_share)}${reasoningOf(report)}`)
  if (seconds !== null)
    lines.push(
      `Wall time      ${formatDuration(seconds * 1000)} from ${report.started_at}${pauses(report)}`,
      `Rates          ${report.requests_per_second!.toFixed(2)} requests/s, ${report.tokens_per_second?.toFixed(0) ?? 'unknown'} tokens/s, ${report.mean_open!.toFixed(1)} open in the mean`,
    )
  return [...lines, ...untold(report).map(([name, what]) => `${name.padEnd(14)} ${what}`)]
}

/** What the rates are not of: of mixed files they would be taken for those of all answers. */
export function untold({ answered, rates_of }: Report): [name: string, what: string][] {
  const { answers, with_tokens } = rates_of
  const lines: [string, string][] = []
  if (answers < answered) {
    const count = counted(answered - answers, 'answer')
    lines.push(['Without times', `${count}: in no rate, and not among open requests`])
  }
  if (with_tokens > 0 && with_tokens < answers) {
    const count = counted(answers - with_tokens, 'answer')
    lines.push(['Without usage', `${count}: tokens/s take them to be as long as the others`])
  }
  return lines
}

/** Of which answers a share of reasoning is, where it is not of all. */
export function reasoningOf({ reasoning_of, answered }: Report): string {
  return reasoning_of < answered ? ` in the ${counted(reasoning_of, 'answer')} that tell` : ''
}

/** Of answers of which some told no length the counts are those of the others. */
function tokenCounts({ tokens, answered, answer_tokens }: Report): string {
  const untold = answered - answer_tokens.count
  if (Object.values(tokens).every((count) => count === null)) return 'unknown: no answer has usage'
  const told = Object.entries(tokens).map(([name, count]) => `${count ?? 'unknown'} ${name}`)
  const but = untold > 0 ? `; ${untold} answers do not tell` : ''
  return `${told.join(', ')}${but}`
}

/** How a run that was stopped and went on is told of. */
export function pauses({ parts, paused_seconds }: Report): string {
  if (parts < 2) return ''
  return `, in ${parts} parts: pauses of ${formatDuration(paused_seconds * 1000)} are left out`
}

function overTime({ over_time }: Report): string[] {
  const { bins, bin_s } = over_time
  if (bins.length < 2) return []
  const line = (name: string, values: number[], digits: number): string =>
    `${name.padEnd(14)} ${sparks(values)}  most ${Math.max(...values).toFixed(digits)}`
  const tokens = bins.flatMap((bin) => bin.tokens_per_s ?? [])
  return [
    `Over time (${bins.length} bins of ${bin_s} s)`,
    line(
      'requests/s',
      bins.map((bin) => bin.requests_per_s),
      2,
    ),
    ...(tokens.length > 0 ? [line('tokens/s', tokens, 0)] : []),
    line(
      'open',
      bins.map((bin) => bin.open),
      1,
    ),
  ]
}

/** @param values null where nothing is known: no part of a mean, and no zero */
function sparks(values: readonly (number | null)[]): string {
  const each = Math.ceil(values.length / SPARKS)
  const means: number[] = []
  for (let at = 0; at < values.length; at += each) {
    const known = values.slice(at, at + each).filter((value) => value !== null)
    means.push(known.reduce((sum, value) => sum + value, 0) / Math.max(1, known.length))
  }
  const most = Math.max(...means)
  // Nothing at all is not the lowest block: a run that stood still shows.
  return means
    .map((value) => (value > 0 ? BLOCKS[Math.round((value / most) * (BLOCKS.length - 1))] : ' '))
    .join('')
}

function ofDistribution(
  name: string,
  { count, mean, p50, p90, p99, max, bars }: Distribution,
  format: (value: number) => string,
): string[] {
  if (count === 0) return []
  const summary = { mean, p50, p90, p99, max }
  const numbers = Object.entries(summary).map(([label, value]) => `${label} ${format(value)}`)
  const most = Math.max(...bars.map((bar) => bar.count))
  return [
    `${name}: ${numbers.join(', ')}`,
    ...bars.map((bar) => {
      const stroke = '#'.repeat(Math.ceil((bar.count / most) * BAR))
      return `  from ${format(bar.from).padEnd(10)} ${stroke.padEnd(BAR)} ${bar.count}`
    }),
  ]
}

function failures({ failures: codes }: Report): string[] {
  const entries = Object.entries(codes)
  if (entries.length === 0) return []
  return ['Failures', ...entries.map(([code, count]) => `  ${printable(code).padEnd(24)} ${count}`)]
}

function whatIf({ what_if }: Report): string[] {
  if (what_if.length === 0) return []
  const lines = what_if.map((row) => {
    const { timeout_s, killed, killed_share, shorter_share } = row
    const shorter =
      shorter_share === null ? lengthLeft(row) : `mean length ${signed(-shorter_share)}`
    return `  ${`${timeout_s} s`.padEnd(7)} kills ${`${killed}`.padStart(6)} (${percent(killed_share)}), ${shorter}`
  })
  return ['A total timeout would have cost', ...lines]
}

/** What is said of answers left whose length is not known, or of none. */
export function lengthLeft({ killed_share }: WhatIf): string {
  return killed_share === 1 ? 'no answer left' : 'length unknown'
}

/** A change in per cent, with its sign unless it is none. */
function signed(share: number): string {
  const text = percent(share)
  if (/^-?0\.0 /.test(text)) return 'unchanged'
  return share > 0 ? `+${text}` : text
}

function stats({ stats: told }: FullReport): string[] {
  if (told === undefined) return []
  const lines = Object.entries(told).flatMap(([name, value]) => {
    if (typeof value === 'number') return [`  ${printable(name)} ${value}`]
    if (typeof value !== 'object' || value === null || name === 'endpoints') return []
    const numbers = Object.entries(value).filter(([, inner]) => typeof inner === 'number')
    return numbers.length === 0
      ? []
      : [`  ${printable(name)}: ${counts(Object.fromEntries(numbers) as Record<string, number>)}`]
  })
  return ['Counts of the run (--stats)', ...lines]
}

function trace({ trace: told }: FullReport): string[] {
  if (told === undefined || told.bins.length === 0) return []
  const { bins, bin_s, reasons, lines } = told
  const line = (
    name: string,
    values: (number | null)[],
    format = (value: number): string => value.toFixed(1),
  ): string => {
    const most = Math.max(...values.map((value) => value ?? 0))
    return `${name.padEnd(14)} ${sparks(values)}  most ${format(most)}`
  }
  const moved = counts(reasons)
  return [
    `Trace (${lines} lines, bins of ${bin_s} s)`,
    line(
      'limit',
      bins.map((bin) => bin.limit),
    ),
    line(
      'in flight',
      bins.map((bin) => bin.in_flight),
    ),
    line(
      'tokens/s',
      bins.map((bin) => bin.tokens_per_second),
    ),
    line(
      'first token',
      bins.map((bin) => bin.first_token_ms),
      formatDuration,
    ),
    ...(moved === '' ? [] : [`limit moved    ${moved}`]),
  ]
}

function next({ advice }: FullReport): string[] {
  return advice.length === 0 ? [] : ['Next time', ...advice.map((line) => `  ${printable(line)}`)]
}
