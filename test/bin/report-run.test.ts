import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startSimulator } from '../../src/simulator/server.ts'
import { newFolder, run } from '../support/run.ts'

const GOOD =
  '{"id":1,"status":"success","conversations":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],' +
  '"finish_reason":"stop","usage":{"completion_tokens":10},"timing":{"total_ms":90000}}\n'

test('reports what it can of a damaged file, names the rest, exit 1', async () => {
  const result = await run('report-run', ['--json'], { input: `${GOOD}{"id":2,"sta\n${TIMED}` })
  assert.equal(result.code, 1)
  assert.match(result.stderr, /^report-run: <stdin>:2:\d+: .* \[truncated\]\n$/)
  const report = JSON.parse(result.stdout.toString())
  assert.deepEqual([report.answered, report.invalid, report.what_if[0].killed], [2, 1, 2])
})

test('a file of another kind is named once, and the others are reported', async () => {
  const cwd = newFolder()
  writeFileSync(join(cwd, 'good'), GOOD)
  for (const [row, message] of [
    [
      '{"dialog":[],"n":1}\n',
      /other: no record of .* in it: it has the fields 'dialog', 'n' \[no-shape\]$/,
    ],
    ['id,text\n', /other: no line is JSON: .*CSV.* \[not-jsonl\]$/],
    ['[\n{},\n{}]\n', /other: one JSON array .*jq -c .* \[json-array\]$/],
  ] as const) {
    writeFileSync(join(cwd, 'other'), row.repeat(15_000))
    for (const args of [
      ['other', 'good'],
      ['--failures', 'other', 'good'],
    ]) {
      const { code, stderr, stdout } = await run('report-run', ['--json', ...args], { cwd })
      assert.equal(code, 1, stderr)
      const lines = stderr.trimEnd().split('\n')
      assert.equal(lines.length, 1, lines.slice(0, 3).join('\n'))
      assert.match(lines[0]!, message)
      assert.equal(JSON.parse(stdout.toString()).answered, 1)
    }
  }
})

test('an empty file is a report of nothing', async () => {
  const result = await run('report-run', [], { input: '' })
  assert.deepEqual([result.code, result.stderr], [0, ''])
  assert.match(result.stdout.toString(), /^Records +0: /)
})

test('what failed and was answered by a run that went on is answered', async (t) => {
  const directory = mkdtempSync(join(tmpdir(), 'report-'))
  t.after(() => rmSync(directory, { recursive: true }))
  const path = (name: string): string => join(directory, name)
  const lines = Array.from({ length: 40 }, (_, id) => JSON.stringify({ id, prompt: `q${id}` }))
  writeFileSync(path('questions.jsonl'), `${lines.join('\n')}\n{"prompt":"no id"}\n{"id":"none"}\n`)
  const files = ['-o', path('answers.jsonl'), '--failures', path('failures.jsonl'), '--resume']
  const ask = async (faults: string[]): Promise<number | null> => {
    const server = await startSimulator({ speed: 100, meanTokens: 5, faults, keepAliveMs: 0 })
    const args = ['-q', '--url', `${server.url}/v1`, '--retries', '0', '--clock-speed', '100']
    const { code } = await run('fanout-complete', [...args, ...files, path('questions.jsonl')])
    await server.close()
    return code
  }
  assert.deepEqual([await ask(['500:50%']), await ask(['in-band-error:50%'])], [1, 1])
  const failed = readFileSync(path('failures.jsonl'), 'utf8').trimEnd().split('\n')
  const between = await report()
  assert.ok(between.failed > 1 && between.failed < failed.length, String(between.failed))
  assert.equal(between.answered + between.failed, 42)
  assert.equal(await ask([]), 1)
  const { answered, failed: left, records, failures, answered_later: later } = await report()
  assert.deepEqual([answered, left, records, failures], [41, 1, 42, { 'no-prompt': 1 }])
  const first = new Map(failed.map((line) => [JSON.parse(line).id, JSON.parse(line).error.code]))
  assert.equal(sum(later), first.size - 1)
  const text = await run('report-run', [
    path('answers.jsonl'),
    '--failures',
    path('failures.jsonl'),
  ])
  assert.match(
    text.stdout.toString(),
    new RegExp(`^Also answered +${first.size - 1} that failed`, 'm'),
  )

  async function report(): Promise<Counts> {
    const args = ['--json', path('answers.jsonl'), '--failures', path('failures.jsonl')]
    const { code, stdout, stderr } = await run('report-run', args)
    assert.deepEqual([code, stderr], [0, ''])
    return JSON.parse(stdout.toString()) as Counts
  }
})

test('any success completes a record, whatever stands before or after it', async () => {
  const cwd = newFolder()
  const answer = (id: number): string => GOOD.replace('"id":1', `"id":${id}`)
  const failure = (id: number, code = 'http-500'): string =>
    `${JSON.stringify({ id, status: 'error', error: { code } })}\n`
  const files = {
    answers: answer(1) + answer(2) + answer(3),
    failures: failure(2) + failure(3) + failure(3) + failure(4),
    mixed: failure(1) + answer(1) + failure(1) + failure(5) + answer(1),
  }
  for (const [name, text] of Object.entries(files)) writeFileSync(join(cwd, name), text)
  for (const args of [
    ['answers', 'failures', 'mixed'],
    ['mixed', 'failures', 'answers'],
    ['failures', 'mixed', 'answers'],
    ['answers', 'mixed', '--failures', 'failures'],
    ['answers', 'failures', '--failures', 'mixed'],
  ]) {
    const { code, stdout } = await run('report-run', ['--json', ...args], { cwd })
    const report = JSON.parse(stdout.toString()) as Counts & { repeated: number }
    const { records, answered, failed, repeated } = report
    const counts = { code, records, answered, failed, repeated }
    const wanted = { code: 0, records: 5, answered: 3, failed: 2, repeated: 2 }
    assert.deepEqual(counts, wanted, args.join(' '))
    assert.deepEqual(
      [report.failures, report.answered_later],
      [{ 'http-500': 2 }, { 'http-500': 3 }],
    )
  }
})

test('a total timeout holds for each turn: the longest one of a record counts', async () => {
  const turns = (...times: number[]): string =>
    GOOD.replace(
      '"timing":{"total_ms":90000}',
      `"attempts":3,"timing":{"total_ms":180000},"turns":${JSON.stringify(times.map((total) => ({ attempts: 1, total_ms: total })))}`,
    )
  const input =
    turns(50_000, 70_000, 60_000) +
    // Turns of another tool, or without their times: the whole is what is known.
    GOOD.replace('"timing"', '"turns":["q","a"],"timing"').replace('90000', '180000') +
    turns(50_000, 50_000, 50_000)
  const { code, stderr, stdout } = await run('report-run', ['--json'], { input })
  assert.deepEqual([code, stderr], [0, ''])
  const report = JSON.parse(stdout.toString())
  const killed = report.what_if.slice(0, 3).map((row: { killed: number }) => row.killed)
  assert.deepEqual(killed, [2, 1, 0])
  assert.equal(report.retried, 0)
  assert.match(report.advice[0], /The longest request took 3 m 0 s; --timeout 120 would/)
})

const TIMED = GOOD.replace(
  '"timing":{',
  '"attempts":1,"timing":{"started_at":"2026-01-05T10:00:00Z","first_token_ms":100,',
)

describe('a value that cannot be is named once, and the record left out', () => {
  const cwd = newFolder()
  const files = (of: Record<string, string>): void => {
    for (const [name, text] of Object.entries(of)) writeFileSync(join(cwd, name), text)
  }
  const noNonsense = async (args: string[]): Promise<{ stderr: string; json: string }> => {
    const all = ['--html', 'page.html', ...args]
    const { code, stderr, stdout } = await run('report-run', all, { cwd })
    const json = (await run('report-run', ['--json', ...args], { cwd })).stdout.toString()
    const page = readFileSync(join(cwd, 'page.html'), 'utf8')
    assert.equal(code, 1, stderr)
    for (const text of [stderr, stdout.toString(), json, page]) {
      assert.doesNotMatch(text, /NaN|Infinity|undefined|e\+\d/)
    }
    return { stderr, json }
  }

  test('in answers', async () => {
    const bad = [
      ['"total_ms":90000', '"total_ms":1e308', 'total_ms'],
      ['"total_ms":90000', '"total_ms":1e400', 'total_ms'],
      ['"total_ms":90000', '"total_ms":-5', 'total_ms'],
      ['"total_ms":90000', '"total_ms":"12"', 'total_ms'],
      ['"total_ms":90000', '"total_ms":99', 'first_token_ms'],
      ['"2026-01-05T10:00:00Z"', '"foo"', 'started_at'],
      ['"2026-01-05T10:00:00Z"', '5', 'started_at'],
      ['"2026-01-05T10:00:00Z"', '"9999-12-31T00:00:00Z"', 'started_at'],
      ['"2026-01-05T10:00:00Z"', '"1970-01-01T00:00:00Z"', 'started_at'],
      ['"completion_tokens":10', '"completion_tokens":1e308', 'completion_tokens'],
      ['"attempts":1', '"attempts":-1', 'attempts'],
    ] as const
    const lines = bad.map(([from, to]) => TIMED.replace(from, to))
    files({ answers: `${TIMED}${lines.join('')}` })
    const { stderr, json } = await noNonsense(['answers'])
    const named = stderr.trimEnd().split('\n')
    assert.equal(named.length, bad.length, stderr)
    for (const [index, [, , member]] of bad.entries()) {
      const line = lines[index]!
      const column = member.includes('_tokens')
        ? line.indexOf('{"completion_tokens"') + 1
        : line.indexOf(member === 'attempts' ? '-1' : '{"started_at"') + 1
      const message = new RegExp(
        `answers:${index + 2}:${column}: '${member}' is .* \\[impossible-value\\]$`,
      )
      assert.match(named[index]!, message)
    }
    const report = JSON.parse(json)
    assert.deepEqual([report.answered, report.invalid, report.total_ms.max], [1, 11, 90_000])
  })

  test('in a trace and in counts', async () => {
    const state = '{"time":"2026-01-05T10:00:00Z","in_flight":1,"limit":4,"reason":"fixed"}\n'
    const trace = `${state}${state.replace('4', '1e308')}${state.replace('2026', '9999')}${state}`
    files({ good: TIMED, trace, stats: '{"records":1,"latency_ms":{"p50":1e400}}\n' })
    const { stderr, json } = await noNonsense(['good', '--trace', 'trace', '--stats', 'stats'])
    assert.match(
      stderr,
      /^.*stats:1:1: 'p50' is .*\n.*trace:2:1: 'limit' is .*\n.*trace:3:1: 'time' is .*\n$/,
    )
    const report = JSON.parse(json)
    assert.deepEqual([report.answered, report.trace.lines, report.stats], [1, 2, undefined])
  })
})

test('answers without usage are of unknown length, and killed all the same', async () => {
  const without = (totalMs: number): string =>
    TIMED.replace('"usage":{"completion_tokens":10}', '"usage":null').replace('90000', `${totalMs}`)
  const input = without(90_000) + without(10_000)
  const text = (await run('report-run', [], { input })).stdout.toString()
  assert.match(text, /^Tokens +unknown: no answer has usage$/m)
  assert.match(text, /^Rates .* unknown tokens\/s,/m)
  assert.doesNotMatch(text, /^tokens\/s/m)
  assert.match(text, /^ {2}60 s .* 1 \(50\.0 %\), length unknown$/m)
  assert.match(text, /^ {2}120 s .* 0 \(0\.0 %\), length unknown$/m)
  assert.doesNotMatch(text, /no answer left/)
  const { stdout } = await run('report-run', ['--json'], { input })
  const report = JSON.parse(stdout.toString())
  assert.deepEqual([report.tokens.completion, report.tokens_per_second], [null, null])
  const some = await run('report-run', [], { input: input + TIMED })
  assert.match(some.stdout.toString(), /^Tokens .* 10 completion.*; 2 answers do not tell$/m)
  const none = await run('report-run', [], { input: without(90_000) })
  assert.match(none.stdout.toString(), /^ {2}60 s .* 1 \(100\.0 %\), no answer left$/m)
})

test('the advice on concurrency goes by the trace, and gives none of few answers', async () => {
  const cwd = newFolder()
  const lines = Array.from({ length: 20 }, (_, id) => TIMED.replace('"id":1', `"id":${id}`))
  writeFileSync(join(cwd, 'answers'), lines.join(''))
  writeFileSync(join(cwd, 'few'), lines.slice(1).join(''))
  const advised = async (
    file: string,
    ...states: [number, string, object[]?][]
  ): Promise<string> => {
    const trace = states.map(([limit, reason, endpoints], second) => {
      const time = new Date(Date.UTC(2026, 0, 5, 10, 0, second)).toISOString()
      return `${JSON.stringify({ time, limit, reason, endpoints })}\n`
    })
    writeFileSync(join(cwd, 'trace'), trace.join(''))
    const { stdout } = await run('report-run', ['--json', file, '--trace', 'trace'], { cwd })
    const { advice } = JSON.parse(stdout.toString()) as { advice: string[] }
    return advice.find((line) => line.startsWith('--concurrency'))!
  }
  assert.match(await advised('answers', [4, 'fixed'], [4, 'fixed']), /more may be faster; auto/)
  const free = 'no queue at the server'
  assert.match(
    await advised('answers', [4, 'start'], [6, free]),
    /^--concurrency: auto\. .* no long queue, at the limit that auto found\.$/,
  )
  assert.match(
    await advised('answers', [9, 'start'], [8, '12 preemptions a minute'], [9, free]),
    /^--concurrency: auto\. .* The limit moved once for preemptions: the KV cache is the limit, /,
  )
  assert.match(
    await advised('answers', [9, 'start | start'], [8, `${free} | 4 preemptions a minute`]),
    /the KV cache is the limit/,
  )
  const full = (limit: number, reason: string) => ({ url: 'a', limit, reason })
  const second = { url: 'b', limit: 4, reason: free }
  assert.match(
    await advised(
      'answers',
      [13, 'start | start', [full(9, 'start'), second]],
      [12, `4 preemptions a minute | ${free}`, [full(8, '4 preemptions a minute'), second]],
    ),
    /\. At 1 of 2 servers the limit moved once for preemptions: there the KV cache is the limit, /,
  )
  assert.match(await advised('few', [4, 'fixed']), /: 19 answers .* too few to tell\.$/)
})

test('a file of counts has one object: none is named, and a second', async () => {
  const cwd = newFolder()
  writeFileSync(join(cwd, 'good'), GOOD)
  for (const [counts, message, records] of [
    ['', /stats: no counts of a run in it \[no-shape\]\n$/, undefined],
    ['\n\n', /stats: no counts of a run in it \[no-shape\]\n$/, undefined],
    ['{"records":1}\n{"records":2}\n', /stats:2:1: more counts .* \[not-a-record\]\n$/, 1],
    ['{"records":', /^report-run: stats:1:\d+: .*\[(truncated|not-jsonl)\]\n$/, undefined],
    ['{"records":1}\n', /^$/, 1],
  ] as const) {
    writeFileSync(join(cwd, 'stats'), counts)
    const result = await run('report-run', ['--json', 'good', '--stats', 'stats'], { cwd })
    assert.match(result.stderr, message)
    assert.equal(result.code, result.stderr === '' ? 0 : 1)
    const report = JSON.parse(result.stdout.toString())
    assert.deepEqual([report.stats?.records, report.answered], [records, 1])
  }
})

test('the same line twice counts once, two answers to one record are two', async () => {
  const cwd = newFolder()
  const bare = '{"choices":[{"message":{"content":"4"},"finish_reason":"stop"}]}\n'
  writeFileSync(join(cwd, 'answers'), `${GOOD}${GOOD.replace('90000', '80000')}${bare}`)
  const args = ['answers', 'answers']
  const report = JSON.parse(
    (await run('report-run', ['--json', ...args], { cwd })).stdout.toString(),
  )
  // A line without an id may be like another one by chance.
  assert.deepEqual([report.records, report.answered, report.repeated], [4, 4, 2])
  assert.equal(report.tokens.completion, 20)
  // The second line of a record is known again, too.
  const again = await run('report-run', ['--json', ...args, ...args], { cwd })
  const { answered, repeated } = JSON.parse(again.stdout.toString())
  assert.deepEqual([answered, repeated], [6, 6])
  const { stdout, code } = await run('report-run', args, { cwd })
  assert.equal(code, 0)
  assert.match(stdout.toString(), /^Repeated +2 lines that were counted before, left out$/m)
})

test('over time: nothing is a blank, durations have their unit', async () => {
  const cwd = newFolder()
  const at = (second: number): string => `2026-01-05T10:00:${String(second).padStart(2, '0')}Z`
  const answer = (id: number, second: number): string =>
    TIMED.replace('"id":1', `"id":${id}`).replace('90000', '900').replace(at(0), at(second))
  const state = (second: number, limit: number, first?: number): string =>
    `${JSON.stringify({ time: at(second), limit, in_flight: 0, first_token_ms: first })}\n`
  writeFileSync(join(cwd, 'answers'), answer(1, 0) + answer(2, 3))
  writeFileSync(join(cwd, 'trace'), state(0, 1) + state(1, 100) + state(2, 100, 21_120.5))
  const { stdout } = await run('report-run', ['answers', '--trace', 'trace'], { cwd })
  const text = stdout.toString()
  assert.match(text, /^requests\/s {5}█ {2}█ {2}most 1\.00$/m)
  assert.match(text, /^limit {10}▁██ {2}most 100\.0$/m)
  assert.match(text, /^in flight {9} {2}most 0\.0$/m)
  assert.match(text, /^first token {6}█ {2}most 21\.1 s$/m)
  assert.doesNotMatch(text, /\. [a-z]/)
})

test('what is not told is no part of a mean over time', async () => {
  const cwd = newFolder()
  const state = (second: number, limit: number): string =>
    `${JSON.stringify({ time: new Date(Date.UTC(2026, 0, 5, 10, 0, second)).toISOString(), limit })}\n`
  // 120 bins, two for each block: one that is half a gap has the mean of the rest.
  const states = Array.from({ length: 120 }, (_, second) => state(second, 8))
  const gaps = [10, 11, 12, 31, 32, 33]
  writeFileSync(join(cwd, 'trace'), states.filter((_, second) => !gaps.includes(second)).join(''))
  writeFileSync(join(cwd, 'answers'), TIMED)
  const { stdout } = await run('report-run', ['answers', '--trace', 'trace'], { cwd })
  const line = `${'█'.repeat(5)} ${'█'.repeat(10)} ${'█'.repeat(43)}`
  assert.match(stdout.toString(), new RegExp(`^limit {10}${line}  most 8\\.0$`, 'm'))
})

test('reasoning of a bare completion, as each kind of server names it', async () => {
  for (const message of [
    { content: 'four', reasoning_content: 'think!' },
    { content: 'four', reasoning: 'think!' },
    { content: 'four', thinking: 'think!' },
    { content: 'four', reasoning_content: '', reasoning: null, thinking: 'think!' },
  ]) {
    const input = `${JSON.stringify({ choices: [{ message, finish_reason: 'stop' }] })}\n`
    const { stdout } = await run('report-run', ['--json'], { input })
    assert.equal(JSON.parse(stdout.toString()).reasoning_share, 0.6, JSON.stringify(message))
  }
})

test('characters that drive a terminal or turn text around are escaped in all that is written', async () => {
  const cwd = newFolder()
  const WILD = [
    '\u009b',
    '\u0080',
    '\u009f',
    '\u202a',
    '\u202e',
    '\u2066',
    '\u2069',
    '\u001b',
    '\u007f',
  ]
  const name = `x-timeout${WILD.join('')}`
  writeFileSync(
    join(cwd, 'answers'),
    GOOD.replace('"stop"', JSON.stringify(name)) +
      `${JSON.stringify({ id: 2, status: 'error', error: { code: name } })}\n`,
  )
  writeFileSync(join(cwd, 'stats'), `${JSON.stringify({ [name]: 1, in: { [name]: 1 } })}\n`)
  const states = [1, 2].map((limit) =>
    JSON.stringify({ time: `2026-01-05T10:00:0${limit}Z`, limit, reason: name }),
  )
  writeFileSync(join(cwd, 'trace'), `${states.join('\n')}\n`)
  const args = ['answers', '--stats', 'stats', '--trace', 'trace']
  const text = await run('report-run', [...args, '--html', 'page.html'], { cwd })
  const json = (await run('report-run', ['--json', ...args], { cwd })).stdout.toString()
  const page = readFileSync(join(cwd, 'page.html'), 'utf8')
  for (const written of [text.stdout.toString(), json, page]) {
    for (const wild of WILD) assert.ok(!written.includes(wild), encodeURIComponent(wild))
    assert.match(written, /x-timeout\\u009b\\u0080\\u009f\\u202a\\u202e/)
  }
  assert.equal(JSON.parse(json).failures[name], 1)
})

interface Counts {
  records: number
  answered: number
  failed: number
  failures: Record<string, number>
  answered_later: Record<string, number>
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((all, count) => all + count, 0)
}
