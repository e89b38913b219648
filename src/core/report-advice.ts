import { counted, formatDuration } from './quantity.ts'
import type { Report } from './run-report.ts'
import type { TraceReport } from './trace-report.ts'

/** With fewer answers the ramp and the tail are the run: its height says nothing of a longer one. */
const FEW = 20
/** Where more of the answers do not tell, rates are not those of the run: percentiles are no finer. */
const MOST_UNTOLD = 0.05

/** What to set next time, each with the arithmetic behind it; data for a person. */
export function advice(report: Report, trace?: TraceReport): string[] {
  return [
    timeoutAdvice(report),
    openAdvice(report, trace),
    lengthAdvice(report),
    timeAdvice(report),
    failureAdvice(report),
  ].filter((line) => line !== undefined)
}

function timeoutAdvice({ longest_request_ms, what_if }: Report): string | undefined {
  if (longest_request_ms === null) return undefined
  const worst = what_if.findLast(({ killed }) => killed > 0)
  const longest = `The longest request took ${formatDuration(longest_request_ms)}`
  const loss =
    worst === undefined
      ? ''
      : `; --timeout ${worst.timeout_s} would have killed ${percent(worst.killed_share)} of the answers`
  return `--timeout: leave it off (0). ${longest}${loss}. --idle-timeout tells a dead stream.`
}

/** Little's law, and the queue as first tokens show it, without the ramp and the tail of the run. */
function openAdvice(report: Report, trace: TraceReport | undefined): string | undefined {
  const { mean_open, requests_per_second, total_ms, first_token_ms, at_height, rates_of } = report
  if (mean_open === null || requests_per_second === null) return undefined
  const flaw = flawOfRates(report)
  if (flaw !== undefined) return `--concurrency: ${flaw}`
  const mean = total_ms.mean / 1000
  const law =
    `${mean_open.toFixed(1)} requests were open in the mean = ` +
    `${requests_per_second.toFixed(2)} answers/s * ${mean.toFixed(1)} s`
  if (!areMost(first_token_ms.count, rates_of.answers) || at_height === null)
    return `--concurrency: ${law}.`
  const { open, queued, seconds } = at_height
  const span = formatDuration(seconds * 1000)
  const height = `For ${span} at its height ${open.toFixed(1)} were open`
  const split = `${queued.toFixed(1)} of them waited in a queue for a first token`
  if (trace !== undefined && trace.preempted > 0) {
    return `--concurrency: auto. ${law}. ${height}, ${split}. ${preemptions(trace)}`
  }
  if (queued < 0.1 * open && trace?.auto) {
    return `--concurrency: auto. ${law}. ${height}, ${split}: no long queue, at the limit that auto found.`
  }
  if (queued < 0.1 * open) {
    return `--concurrency: ${law}. ${height}, ${split}: no long queue, more may be faster; auto finds out.`
  }
  const rest = `${open.toFixed(1)} - ${queued.toFixed(1)} = ${(open - queued).toFixed(1)}`
  const next = Math.max(1, Math.round(open - queued))
  return `--concurrency: ${next} or auto. ${law}. ${height}, ${split}, which gains nothing: ${rest}.`
}

function preemptions({ preempted, preempted_servers, servers }: TraceReport): string {
  const times = preempted === 1 ? 'once' : `${preempted} times`
  const [moved, there] =
    servers === 1
      ? ['The limit moved', '']
      : [`At ${preempted_servers} of ${servers} servers the limit moved`, 'there ']
  return `${moved} ${times} for preemptions: ${there}the KV cache is the limit, and more open requests are not faster.`
}

function lengthAdvice({ cut_by_length, answered, answer_tokens }: Report): string | undefined {
  if (cut_by_length === 0) return undefined
  const share = percent(cut_by_length / answered)
  const cut = `--max-tokens: ${cut_by_length} of ${answered} answers (${share}) were cut`
  if (answer_tokens.count === 0) return `${cut}; twice that lets more of them end.`
  return `${cut} at up to ${answer_tokens.max} tokens; twice that lets more of them end.`
}

function timeAdvice(report: Report): string | undefined {
  const { requests_per_second: rate } = report
  if (!rate) return undefined
  const flaw = flawOfRates(report)
  if (flaw !== undefined) return `Time: ${flaw}`
  const time = formatDuration((25_000 / rate) * 1000)
  return `Time: 25000 answers / ${Number(rate.toPrecision(3))} answers/s = ${time}, at the rate of this run with its ramp and its tail.`
}

/** Why the rates of a run say nothing of another one. */
function flawOfRates({ answered, rates_of: { answers } }: Report): string | undefined {
  if (answers < FEW) return `${counted(answers, 'answer')} with times: too few to tell.`
  if (areMost(answers, answered)) return undefined
  return `${answered - answers} of ${answered} answers have no times: too many to tell.`
}

function areMost(told: number, all: number): boolean {
  return told > 0 && told >= (1 - MOST_UNTOLD) * all
}

function failureAdvice({ failures }: Report): string | undefined {
  const timeouts = Object.entries(failures).filter(([code]) => code.includes('timeout'))
  if (timeouts.length === 0) return undefined
  const list = timeouts.map(([code, count]) => `${count} ${code}`).join(', ')
  return `Timeouts: ${list}. Raise that budget, or open fewer requests.`
}

/** A share for people. */
export function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`
}
