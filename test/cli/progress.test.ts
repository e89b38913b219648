import assert from 'node:assert/strict'
import { test } from 'node:test'
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

/** What a progress with this state writes: its bar, or its line. */
function shown(columns: number, state: Partial<ProgressState> = {}): string {
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
  // A message makes room for the bar and draws it anew.
  if (columns > 0) report.note('hello')
  else progress.show()
  progress.stop()
  return written
}

function bar(columns: number, state: Partial<ProgressState> = {}): string {
  const drawn = shown(columns, state)
    .split('\r')
    .find((part) => part.includes('/'))
  return drawn!.replace('\u001b[K', '')
}

test('the line without a terminal', () => {
  assert.match(
    shown(0),
    /^Progress: 2680\/25000 \(222 errors\), \d+\.\d req\/s, avg completion: 1263 tokens, elapsed: \d+s\n$/,
  )
  assert.match(
    shown(0, { total: undefined, waiting: 'http://x is out' }),
    /^Progress: 2680\/\? .*, waiting: http:\/\/x is out\n$/,
  )
})

test('the bar fits the terminal, and every number is there in 80 columns', () => {
  for (const columns of [80, 100, 200]) {
    const text = bar(columns)
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
  assert.match(bar(200), /^\[##\.{18}\] 2680/)
  assert.match(bar(200, { done: 30_000 }), /^\[#{20}\] /)
  assert.ok(bar(30).length < 30)
})

test('the line tells how long first tokens take, and the time left once it can be told', () => {
  const line = shown(0, { firstToken: 1240, firstTokenFloor: 210 })
  assert.match(line, /elapsed: 0s, first token: 1\.2 s \(floor 210 ms\)\n$/)
  const lengths = new AnswerLengths()
  lengths.add(1000)
  const work = { lengths, openLengths: [500], total: 101, done: 100 }
  assert.match(shown(0, work), /, ETA: \d+ ms\n$/)
})
