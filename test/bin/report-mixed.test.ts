import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const ANSWERS = 400
/** One answer a second, of 100 tokens, 40 of them reasoning: 1/s and 100 tokens/s. */
const TIMING = { first_token_ms: 100, total_ms: 20_000 }
const USAGE = { prompt_tokens: 10, completion_tokens: 100 }
const DETAILS = { completion_tokens_details: { reasoning_tokens: 40 } }

interface Parts {
  timing?: object | undefined
  usage?: object | undefined
}

function line(id: number, parts: Parts): string {
  const started_at = new Date(Date.UTC(2026, 0, 5) + 1000 * id).toISOString()
  return `${JSON.stringify({
    id,
    status: 'success',
    conversations: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: 'four', reasoning_content: 'think!' },
    ],
    finish_reason: 'stop',
    usage: { ...USAGE, ...DETAILS },
    ...parts,
    timing: 'timing' in parts ? parts.timing : { started_at, ...TIMING },
  })}\n`
}

/** Reports a file of which some answers, one in `each`, are without something. */
async function reported(without: Parts, each = 2, answers = ANSWERS) {
  const lines = Array.from({ length: answers }, (_, id) => line(id, id % each === 0 ? without : {}))
  const input = lines.join('')
  const text = (await run('report-run', [], { input })).stdout.toString()
  const json = (await run('report-run', ['--json'], { input })).stdout.toString()
  const report = JSON.parse(json)
  const advised = (begin: string): string =>
    report.advice.find((one: string) => one.startsWith(begin))
  return { text, report, time: advised('Time'), open: advised('--concurrency') }
}

const near = (value: number, wanted: number): void =>
  assert.ok(Math.abs(value / wanted - 1) < 0.06, `${value} for ${wanted}`)

describe('of answers of which half tell less', () => {
  test('all tell: nothing is said of it', async () => {
    const { text, report, time } = await reported({}, 1)
    near(report.tokens_per_second, 100)
    assert.deepEqual(report.rates_of, { answers: ANSWERS, with_tokens: ANSWERS })
    assert.doesNotMatch(text, /^Without/m)
    assert.match(text, /^Reasoning +40\.0 %$/m)
    assert.match(time, /^Time: 25000 answers \/ 0\.955 answers\/s = 7 h 16 m, .*ramp .* tail/)
  })

  test('without usage: tokens a second are scaled, which is said, and the time is right', async () => {
    const { text, report, time } = await reported({ usage: undefined })
    near(report.tokens_per_second, 100)
    const { bins, bin_s } = report.over_time
    const binned = bins.reduce((sum: number, bin: { tokens_per_s: number }) => {
      return sum + bin.tokens_per_s * bin_s
    }, 0)
    near(binned, 100 * ANSWERS)
    assert.deepEqual(report.rates_of, { answers: ANSWERS, with_tokens: ANSWERS / 2 })
    assert.match(
      text,
      /^Without usage +200 answers: tokens\/s take them to be as long as the others$/m,
    )
    assert.match(time, /= 7 h 16 m, /)
  })

  test('without times: rates are of the others, which is said, and nothing is advised', async () => {
    const { text, report, time, open } = await reported({ timing: undefined })
    near(report.requests_per_second, 0.5)
    assert.deepEqual(report.rates_of, { answers: ANSWERS / 2, with_tokens: ANSWERS / 2 })
    assert.match(text, /^Without times +200 answers: in no rate, and not among open requests$/m)
    for (const advice of [time, open]) {
      assert.match(advice, /: 200 of 400 answers have no times: too many to tell\.$/)
    }
    const few = await reported({ timing: undefined }, 40)
    assert.match(few.text, /^Without times +10 answers: /m)
    assert.match(few.time, /^Time: 25000 answers \/ 0\.9\d+ answers\/s = /)
  })

  test('without reasoning tokens: the share is of the others, which is said', async () => {
    const { text, report } = await reported({ usage: USAGE })
    assert.deepEqual([report.reasoning_share, report.reasoning_of], [0.4, ANSWERS / 2])
    assert.match(text, /^Reasoning +40\.0 % in the 200 answers that tell$/m)
    const none = await reported({ usage: USAGE }, 1)
    assert.deepEqual([none.report.reasoning_share, none.report.reasoning_of], [0.6, ANSWERS])
  })

  test('without a first token: nothing is said of a queue', async () => {
    const timing = { started_at: '2026-01-05T00:00:00Z', total_ms: 20_000 }
    const { open } = await reported({ timing })
    assert.match(open, /^--concurrency: [\d.]+ requests were open .* answers\/s \* [\d.]+ s\.$/)
  })
})

test('the time is not told of fewer than 20 answers, as the concurrency is not', async () => {
  for (const [answers, advice] of [
    [1, /: 1 answer with times: too few to tell\.$/],
    [19, /: 19 answers with times: too few to tell\.$/],
    [20, /= /],
  ] as const) {
    const { time, open } = await reported({}, 1, answers)
    assert.match(time, advice)
    assert.match(open, advice)
  }
})

test('the page says it, too', async () => {
  const cwd = newFolder()
  const parts = [{ timing: undefined }, { usage: undefined }, {}]
  const input = parts.map((without, id) => line(id, without)).join('')
  await run('report-run', ['--html', 'page.html'], { cwd, input })
  const page = readFileSync(join(cwd, 'page.html'), 'utf8')
  assert.match(page, />Without times: 1 answer: in no rate, /)
  assert.match(page, />Without usage: 1 answer: tokens\/s take them /)
  assert.match(page, />of it reasoning in the 2 answers that tell</)
})

test('of answers of which none has times there are no rates', async () => {
  const { text, report, time } = await reported({ timing: undefined }, 1)
  assert.deepEqual([report.requests_per_second, time], [null, undefined])
  assert.match(text, /^Without times +400 answers: /m)
  assert.doesNotMatch(text, /^Rates/m)
})
