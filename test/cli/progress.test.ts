import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Progress, type ProgressState } from '../../src/cli/progress.ts'
import { Reporter } from '../../src/cli/reporter.ts'
import { systemClock } from '../../src/cli/system-clock.ts'
import { AnswerLengths } from '../../src/core/eta.ts'

const STATE: ProgressState = {
  done: 2680,
  total: 25_000,
  errors: 222,
  retries: 35,
  inFlight: 128,
  completionTokens: 3_104_454,
  answered: 2458,
  waiting: undefined,
  pace: undefined,
  lengths: new AnswerLengths(),
  openLengths: [],
  delivered: undefined,
  firstToken: undefined,
  firstTokenFloor: undefined,
}

/** A progress with this state, on a terminal of so many columns (0: none), and what it has written. */
function started(
  columns: number,
  state: Partial<ProgressState>,
): { progress: Progress; report: Reporter; written: () => string } {
  let written = ''
  const report = new Reporter('x', (text) => {
    written += text
  })
  const progress = new Progress({
    clock: { ...systemClock(), now: () => 0 },
    report,
    state: () => ({ ...STATE, ...state }),
    live: columns > 0,
    columns: () => columns,
    every: 0,
  })
  return { progress, report, written: () => written }
}

/** The line of a progress with this state. */
function shown(state: Partial<ProgressState> = {}): string {
  const { progress, written } = started(0, state)
  progress.show()
  progress.stop()
  return written()
}

async function bar(columns: number, state: Partial<ProgressState> = {}): Promise<string> {
  const { progress, written } = started(columns, state)
  while (written() === '') await sleep(20)
  progress.stop()
  const drawn = written()
    .split('\r')
    .find((part) => part.includes('/'))
  return drawn!.replace('\u001b[K', '')
}

test('the line without a terminal', () => {
  assert.match(
    shown(),
    /^Progress: 2680\/25000 \(222 errors\), \d+\.\d req\/s, avg completion: 1263 tokens, elapsed: \d+s\n$/,
  )
  assert.match(
    shown({ total: undefined, waiting: 'http://x is out' }),
    /^Progress: 2680\/\? .*, waiting: http:\/\/x is out\n$/,
  )
})

test('records that were answered before say nothing of how fast it goes', () => {
  let now = 0
  let written = ''
  const report = new Reporter('x', (text) => {
    written += text
  })
  const state = { ...STATE, done: 2000, answered: 0, errors: 0 }
  const options = { report, state: () => state, live: false, columns: () => 0, every: 0 }
  const progress = new Progress({ ...options, clock: { ...systemClock(), now: () => now } })
  now = 4000
  progress.show()
  progress.stop()
  assert.match(written, /^Progress: 2000\/25000 \(0 errors\), 0\.0 req\/s/)
})

test('the bar counts what comes, not only what is whole', async () => {
  let now = 0
  let written = ''
  const report = new Reporter('x', (text) => {
    written += text
  })
  const progress = new Progress({
    clock: { ...systemClock(), now: () => now },
    report,
    state: () => ({ ...STATE, completionTokens: 0, answered: 0, delivered: now / 10 }),
    live: true,
    columns: () => 200,
    every: 0,
  })
  now = 10_000
  while (written === '') await sleep(20)
  progress.stop()
  assert.match(written, / 100 tok\/s,/)
})

test('what the bar has no room for is left out whole', async () => {
  const state = { firstToken: 1900, firstTokenFloor: 31 }
  assert.match(await bar(200, state), /ETA [^,]*, first token: 1\.9 s \(floor 31 ms\)$/)
  assert.match(await bar(90, state), /ETA [^,]*$/)
  assert.match(await bar(90, { ...state, pace: 'limit 8: held' }), /, limit 8: held$|ETA [^,]*$/)
})

test('the bar fits the terminal, and every number is there in 80 columns', async () => {
  for (const columns of [80, 100, 200]) {
    const text = await bar(columns)
    assert.ok(text.length < columns)
    for (const part of [
      '2680/25000',
      '222 failed',
      '35 retried',
      'req/s',
      'tok/s',
      '128 in flight',
      'ETA ',
    ]) {
      assert.ok(text.includes(part), `${columns}: ${text}`)
    }
  }
  assert.match(await bar(200), /^\[##\.{18}\] 2680/)
  assert.match(await bar(200, { done: 30_000 }), /^\[#{20}\] /)
  assert.ok((await bar(30)).length < 30)
})

test('the line tells how long first tokens take, and the time left once it can be told', () => {
  const line = shown({ firstToken: 1240, firstTokenFloor: 210 })
  assert.match(line, /elapsed: 0s, first token: 1\.2 s \(floor 210 ms\)\n$/)
  const lengths = new AnswerLengths()
  lengths.add(1000)
  const work = { lengths, openLengths: [500], total: 101, done: 100 }
  assert.match(shown(work), /, ETA: \d+ ms\n$/)
})

test('a message makes room for the bar, and one before its first picture stays alone', async () => {
  const { progress, report, written } = started(80, {})
  report.note('early')
  assert.equal(written(), 'x: early\n')
  while (!written().includes('2680')) await sleep(20)
  report.note('late')
  progress.stop()
  const [, behind] = written().split('\r\u001b[Kx: late\n\r')
  assert.ok(behind!.includes('2680') && behind!.endsWith('\r\u001b[K'), behind)
})
