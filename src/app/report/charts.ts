import { printable } from '../../core/printable.ts'
import type { FullReport } from '../../core/report-text.ts'
import type { Distribution } from '../../core/run-report.ts'
import type { Plot } from './plot-library.ts'

/** A chart as inline SVG. */
export interface Chart {
  title: string
  caption: string
  svg: string
}

/** Drawn for a phone's width, so that the letters are readable there. */
const SIZE = {
  width: 360,
  height: 200,
  marginLeft: 48,
  marginBottom: 36,
  style: { fontSize: '11px' },
}
/** Decimals as they are: SI's milli reads as minutes. */
const DECIMAL = '~f'
const FILL = 'var(--fill)'
const SECOND = 'var(--second)'

/** The charts of a report; those without data are left out. */
export function charts(plot: Plot, document: object, report: FullReport): Chart[] {
  const draw = (title: string, caption: string, options: object): Chart => {
    const svg = plot.plot({ document, ...SIZE, ariaLabel: title, ...options })
    svg.setAttribute('role', 'img')
    return { title, caption, svg: svg.outerHTML }
  }
  return [
    ...overTime(plot, draw, report),
    ...ofDistribution(plot, draw, 'Total time', report.total_ms, 'seconds', 1000),
    ...ofDistribution(plot, draw, 'First token', report.first_token_ms, 'seconds', 1000),
    ...ofDistribution(plot, draw, 'Answer length', report.answer_tokens, 'tokens', 1),
    ...whatIf(plot, draw, report),
    ...failures(plot, draw, report),
    ...trace(plot, draw, report),
  ]
}

type Draw = (title: string, caption: string, options: object) => Chart

function overTime(plot: Plot, draw: Draw, { over_time, parts }: FullReport): Chart[] {
  const { bins, bin_s } = over_time
  if (bins.length < 2) return []
  const data = bins.map((bin, index) => ({ ...bin, minutes: (index * bin_s) / 60 }))
  const series = (y: string, label: string) => ({
    x: { label: 'minutes →' },
    y: { label: `↑ ${label}`, grid: true, ticks: 4 },
    marks: [
      plot.areaY(data, { x: 'minutes', y, fill: FILL, fillOpacity: 0.25, curve: 'step-after' }),
      plot.lineY(data, { x: 'minutes', y, stroke: FILL, strokeWidth: 1.5, curve: 'step-after' }),
      plot.ruleY([0]),
    ],
  })
  const caption = `Means of ${bin_s} s each.${parts > 1 ? ' Pauses are left out.' : ''}`
  return [
    ...(bins[0]!.tokens_per_s === null
      ? []
      : [draw('Tokens a second', caption, series('tokens_per_s', 'tokens/s'))]),
    draw('Answers a second', caption, series('requests_per_s', 'answers/s')),
    draw('Open requests', `${caption} Of requests that were answered.`, series('open', 'open')),
  ]
}

function ofDistribution(
  plot: Plot,
  draw: Draw,
  title: string,
  { count, bars, p50, p90, p99 }: Distribution,
  unit: string,
  divisor: number,
): Chart[] {
  if (count === 0) return []
  const from = Math.max(bars[0]!.from, bars[0]!.to / 2)
  const data = bars.map((bar) => ({
    x1: Math.max(bar.from, from) / divisor,
    x2: bar.to / divisor,
    count: bar.count,
  }))
  const number = (value: number): string => Number((value / divisor).toPrecision(3)).toString()
  const caption = `p50 ${number(p50)}, p90 ${number(p90)}, p99 ${number(p99)} ${unit}; logarithmic.`
  return [
    draw(title, caption, {
      x: { type: 'log', label: `${unit} →`, tickFormat: DECIMAL, ticks: 4 },
      y: { label: '↑ answers', grid: true, ticks: 4 },
      marks: [plot.rectY(data, { x1: 'x1', x2: 'x2', y: 'count', fill: FILL }), plot.ruleY([0])],
    }),
  ]
}

function whatIf(plot: Plot, draw: Draw, { what_if }: FullReport): Chart[] {
  if (what_if.length === 0) return []
  const killed = what_if.map((row) => ({ x: `${row.timeout_s}`, y: 100 * row.killed_share }))
  const shorter = what_if.flatMap((row) =>
    row.shorter_share === null ? [] : [{ x: `${row.timeout_s}`, y: 100 * row.shorter_share }],
  )
  const shares = [...killed, ...shorter].map(({ y }) => y)
  // Of nothing but zeros an axis would have a tick of 0.000000.
  const domain = [Math.min(0, ...shares), Math.max(1, ...shares)]
  const line = (data: readonly object[], stroke: string, dash: string) =>
    plot.lineY(data, { x: 'x', y: 'y', stroke, strokeWidth: 2, strokeDasharray: dash })
  const dashed =
    shorter.length === 0
      ? 'How much shorter those left are is not known.'
      : 'Dashed, squares: how much shorter those left are.'
  const caption = `Solid, dots: answers killed. ${dashed}`
  return [
    draw('What a total timeout would have cost', caption, {
      x: { type: 'point', domain: killed.map(({ x }) => x), label: 'timeout in seconds →' },
      y: { label: '↑ per cent', grid: true, ticks: 4, domain },
      marks: [
        plot.ruleY([0]),
        line(killed, FILL, ''),
        plot.dot(killed, { x: 'x', y: 'y', fill: FILL, r: 4 }),
        line(shorter, SECOND, '5 4'),
        plot.dot(shorter, { x: 'x', y: 'y', fill: SECOND, r: 4, symbol: 'square' }),
      ],
    }),
  ]
}

function failures(plot: Plot, draw: Draw, report: FullReport): Chart[] {
  const data = Object.entries(report.failures)
    .slice(0, 8)
    .map(([code, count]) => ({ code: printable(code).slice(0, 20), count }))
  if (data.length === 0) return []
  const most = Math.max(...data.map(({ count }) => count))
  return [
    draw('Failures by code', `${report.failed} records failed.`, {
      marginLeft: 130,
      marginRight: 40,
      height: 60 + 24 * data.length,
      x: { label: 'records →', ticks: Math.min(3, most), tickFormat: '~s', grid: true },
      y: { label: null, domain: data.map(({ code }) => code) },
      marks: [
        plot.barX(data, { x: 'count', y: 'code', fill: FILL }),
        plot.text(data, { x: 'count', y: 'code', text: 'count', dx: 4, textAnchor: 'start' }),
      ],
    }),
  ]
}

function trace(plot: Plot, draw: Draw, { trace: told }: FullReport): Chart[] {
  if (told === undefined || told.bins.length < 2) return []
  const data = told.bins.map((bin, index) => ({ ...bin, minutes: (index * told.bin_s) / 60 }))
  const line = (y: string, stroke: string, dash: string) =>
    plot.lineY(data, { x: 'minutes', y, stroke, strokeWidth: 1.5, strokeDasharray: dash })
  const chart = (title: string, caption: string, label: string, marks: object[]): Chart =>
    draw(title, caption, {
      x: { label: 'minutes →' },
      y: { label: `↑ ${label}`, grid: true, ticks: 4 },
      marks: [plot.ruleY([0]), ...marks],
    })
  return [
    chart('Limit and requests in flight', 'Solid: in flight. Dashed: the limit.', 'requests', [
      line('in_flight', FILL, ''),
      line('limit', SECOND, '5 4'),
    ]),
    ...(data.every((bin) => bin.first_token_ms === null)
      ? []
      : [
          chart('First token over time', 'The median of the last ones.', 'milliseconds', [
            line('first_token_ms', FILL, ''),
          ]),
        ]),
  ]
}
