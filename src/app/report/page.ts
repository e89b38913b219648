import { printable } from '../../core/printable.ts'
import { formatDuration } from '../../core/quantity.ts'
import { percent } from '../../core/report-advice.ts'
import { type FullReport, lengthLeft, pauses, reasoningOf, untold } from '../../core/report-text.ts'
import { type Chart, charts } from './charts.ts'
import { loadPlot } from './plot-library.ts'

const STYLE = `
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #5b6470; --paper: #fff; --line: #d8dde3;
  --fill: #2f6fb7; --second: #b2560d; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --soft: #a3acb8; --paper: #14171b; --line: #353b43; --fill: #6fa8e8;
    --second: #f0a35e; }
}
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1rem; max-width: 62rem; font: 16px/1.45 system-ui, sans-serif;
  color: var(--ink); background: var(--paper) }
h1 { font-size: 1.4rem; margin: 0 0 .25rem } h2 { font-size: 1.05rem; margin: 0 0 .4rem }
p { margin: .3rem 0; overflow-wrap: anywhere } .soft, figcaption { color: var(--soft); font-size: .9rem }
.grid { display: grid; gap: 1.25rem; grid-template-columns: repeat(auto-fit, minmax(min(100%, 21rem), 1fr)) }
section, figure { margin: 1.25rem 0 0; min-width: 0 }
.numbers { display: grid; gap: .6rem; grid-template-columns: repeat(auto-fit, minmax(8.5rem, 1fr)); margin: 1rem 0 }
.numbers div { border: 1px solid var(--line); border-radius: .4rem; padding: .45rem .6rem }
.numbers b { display: block; font-size: 1.15rem; overflow-wrap: anywhere }
.numbers span { color: var(--soft); font-size: .85rem }
svg { width: 100%; height: auto; display: block; overflow: visible }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
td, th { text-align: right; white-space: nowrap; padding: .2rem .4rem; border-bottom: 1px solid var(--line); font-weight: 400 }
th { color: var(--soft); font-size: .85rem } td:first-child, th:first-child { text-align: left; white-space: normal; overflow-wrap: anywhere }
@media (max-width: 26rem) { td, th { font-size: .85rem; padding: .2rem } }
li { margin: .35rem 0; overflow-wrap: anywhere } ul { padding-left: 1.1rem }
`

/** One page with everything in it: no script, nothing from elsewhere. */
export async function reportPage(report: FullReport): Promise<string> {
  const { plot, document } = await loadPlot()
  const figures = charts(plot, document, report).map(figure).join('\n')
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Report of a run</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Report of a run</h1>
<p class="soft">${escaped(when(report))}</p>
${numbers(report)}
${untold(report)
  .map((line) => `<p class="soft">${escaped(line.join(': '))}</p>`)
  .join('\n')}
<div class="grid">
${figures}
</div>
<div class="grid">
${tables(report)}
</div>
${nextTime(report)}
</body>
</html>
`
}

function when(report: FullReport): string {
  const { started_at, seconds, records } = report
  if (started_at === null || seconds === null) return `${records} records`
  return `${records} records, ${formatDuration(seconds * 1000)} from ${started_at}${pauses(report)}`
}

function numbers(report: FullReport): string {
  const { answered, failed, invalid, tokens, cut_by_length, empty, reasoning_share } = report
  const told: [string, string][] = [
    ['answered', `${answered}`],
    ['failed', `${failed}`],
    ['invalid lines', `${invalid}`],
    ...(report.repeated > 0 ? [['repeated lines', `${report.repeated}`] as [string, string]] : []),
    ['cut by length', `${cut_by_length}`],
    ['empty', `${empty}`],
    ['retried', `${report.retried}`],
    ['prompt tokens', `${tokens.prompt ?? '?'}`],
    ['completion tokens', `${tokens.completion ?? '?'}`],
    [
      `of it reasoning${reasoningOf(report)}`,
      reasoning_share === null ? '?' : percent(reasoning_share),
    ],
    ['answers/s', report.requests_per_second?.toFixed(2) ?? '?'],
    ['tokens/s', report.tokens_per_second?.toFixed(0) ?? '?'],
    ['open in the mean', report.mean_open?.toFixed(1) ?? '?'],
  ]
  const boxes = told.map(([name, value]) => `<div><b>${value}</b><span>${name}</span></div>`)
  return `<div class="numbers">${boxes.join('')}</div>`
}

function figure({ title, caption, svg }: Chart): string {
  return `<figure><h2>${escaped(title)}</h2>${svg}<figcaption>${escaped(caption)}</figcaption></figure>`
}

function tables(report: FullReport): string {
  const rows = (of: Record<string, number>): string[][] =>
    Object.entries(of).map(([name, count]) => [name, `${count}`])
  const whatIf = report.what_if.map((row) => [
    `${row.timeout_s} s`,
    `${row.killed}`,
    percent(row.killed_share),
    row.shorter_share === null ? lengthLeft(row) : percent(row.shorter_share),
  ])
  return [
    percentiles(report),
    table(
      'What a total timeout would have cost',
      ['timeout', 'killed', 'share', 'shorter by'],
      whatIf,
    ),
    table('Finish reasons', ['reason', 'answers'], rows(report.finish_reasons)),
    table('Failures by code', ['code', 'records'], rows(report.failures)),
    table(
      'Failed at one time, answered at another',
      ['code', 'records'],
      rows(report.answered_later),
    ),
    table('Why the limit moved', ['reason', 'times'], rows(report.trace?.reasons ?? {})),
  ].join('\n')
}

const DISTRIBUTIONS = [
  ['total time', 'total_ms', formatDuration],
  ['first token', 'first_token_ms', formatDuration],
  ['tokens', 'answer_tokens', (value: number) => `${Math.round(value)}`],
] as const

/** One line for each percentile: six columns of times are wider than a phone. */
function percentiles(report: FullReport): string {
  const told = DISTRIBUTIONS.filter(([, name]) => report[name].count > 0)
  if (told.length === 0) return ''
  const rows = (['mean', 'p50', 'p90', 'p99', 'max'] as const).map((at) => [
    at,
    ...told.map(([, name, format]) => format(report[name][at])),
  ])
  return table('Percentiles', ['', ...told.map(([title]) => title)], rows)
}

function table(title: string, head: readonly string[], rows: readonly string[][]): string {
  if (rows.length === 0) return ''
  const line = (cells: readonly string[], tag: string): string =>
    `<tr>${cells.map((cell) => `<${tag}>${escaped(cell)}</${tag}>`).join('')}</tr>`
  const body = rows.map((row) => line(row, 'td')).join('')
  return `<section><h2>${title}</h2><table><thead>${line(head, 'th')}</thead><tbody>${body}</tbody></table></section>`
}

function nextTime({ advice }: FullReport): string {
  if (advice.length === 0) return ''
  const items = advice.map((line) => `<li>${escaped(line)}</li>`).join('')
  return `<section><h2>Next time</h2><ul>${items}</ul></section>`
}

function escaped(text: string): string {
  const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' }
  return printable(text).replaceAll(/[&<>"]/g, (character) => entities[character]!)
}
