import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../src/core/clock.ts'
import { Deadlines, type Watched } from '../../src/net/deadlines.ts'
import { parseEndpoint } from '../../src/net/endpoint.ts'
import { EventStream } from '../../src/net/event-stream.ts'

/** A clock that a test turns by hand; sweeps come when the test says so. */
class HandClock implements Clock {
  time = 0
  period = 0
  now(): number {
    return this.time
  }
  date(): number {
    return this.time
  }
  after(): () => void {
    return () => {}
  }
  every(ms: number): () => void {
    this.period = ms
    return () => {}
  }
}

const BUDGETS = { connect: 10_000, firstToken: 60_000, idle: 30_000, total: 0 }

function watched(
  deadlines: Deadlines,
  state: Partial<Watched> = {},
): { request: Watched; expired: string[] } {
  const expired: string[] = []
  const now = deadlines.now()
  const request = {
    startedAt: now,
    connected: false,
    hasFirstToken: false,
    lastByteAt: now,
    stall: () => {},
    expire: (code: string) => expired.push(code),
    ...state,
  } as Watched
  deadlines.watch(request)
  return { request, expired }
}

/** Lets time pass with a sweep at every turn, as a loop that is never late does. */
function pass(clock: HandClock, deadlines: Deadlines, ms: number): void {
  for (const end = clock.time + ms; clock.time < end; ) {
    clock.time += clock.period
    deadlines.sweep()
  }
}

test('each budget in its phase, and not before its time', () => {
  for (const [state, budget, code] of [
    [{}, 10_000, 'connect-timeout'],
    [{ connected: true }, 60_000, 'first-token-timeout'],
    [{ connected: true, hasFirstToken: true }, 30_000, 'idle-timeout'],
  ] as const) {
    const clock = new HandClock()
    const deadlines = new Deadlines(clock, BUDGETS)
    const { expired } = watched(deadlines, state)
    pass(clock, deadlines, budget)
    assert.deepEqual(expired, [])
    pass(clock, deadlines, clock.period)
    assert.equal(expired[0], code)
  }
})

test('the time never runs back, also not when a late sweep finds that nobody swept', () => {
  const clock = new HandClock()
  const deadlines = new Deadlines(clock, BUDGETS)
  let before = deadlines.now()
  for (const step of [100, 10_000, 1, 300, 60_000, 0]) {
    clock.time += step
    const begun = deadlines.now()
    assert.ok(begun >= before)
    deadlines.sweep()
    before = deadlines.now()
    assert.ok(before >= begun, `${begun} was followed by ${before}`)
  }
})

test('time in which nobody swept does not count, however often and long', () => {
  const clock = new HandClock()
  const deadlines = new Deadlines(clock, { ...BUDGETS, total: 100_000 })
  const { expired } = watched(deadlines, { connected: true, hasFirstToken: true })
  for (let i = 0; i < 20; i++) {
    clock.time += 3_600_000
    deadlines.sweep()
    pass(clock, deadlines, 1000)
  }
  assert.deepEqual(expired, [])
  pass(clock, deadlines, 15_000)
  assert.equal(expired[0], 'idle-timeout')
})

test('requests that join and leave in any order, also while others expire, are watched or not', () => {
  const clock = new HandClock()
  const deadlines = new Deadlines(clock, BUDGETS)
  const requests = Array.from({ length: 5 }, () => watched(deadlines))
  const { 1: second, 4: last } = requests
  deadlines.forget(second!.request)
  deadlines.forget(second!.request)
  deadlines.forget(last!.request)
  assert.equal(deadlines.standing().open, 3)
  const others = [requests[0]!, requests[2]!, requests[3]!]
  // The first one that expires takes all of them with it.
  for (const { request, expired } of others) {
    request.expire = (code) => {
      expired.push(code)
      for (const other of others) deadlines.forget(other.request)
    }
  }
  pass(clock, deadlines, 11_000)
  assert.deepEqual(others.map(({ expired }) => expired.length).sort(), [0, 0, 1])
  assert.deepEqual([...second!.expired, ...last!.expired], [])
  assert.equal(deadlines.standing().open, 0)
})

test('a fast clock is swept less often in its own time, never more than a timer can', () => {
  const clock = new HandClock()
  new Deadlines(clock, BUDGETS, 3000)
  assert.ok(clock.period / 3000 >= 10, 'milliseconds of wall time between two sweeps')
})

test('server-sent events, wherever the chunks are cut', () => {
  const text =
    ': hi\r\n\r\ndata: {"a":"é😀"}\n\ndata:two\ndata: lines\n\nevent: x\r\ndata: 3\r\n\r\nevent: error\ndata: no\n\ndata: [DONE]\n\ndata: late'
  const bytes = Buffer.from(text)
  for (let cut = 0; cut <= bytes.length; cut++) {
    const data: string[] = []
    const stream = new EventStream(
      (event) => data.push(event),
      (error) => data.push(`error ${error}`),
    )
    stream.feed(bytes.subarray(0, cut))
    stream.feed(bytes.subarray(cut))
    stream.end()
    assert.deepEqual(data, ['{"a":"é😀"}', 'two\nlines', '3', 'error no'], `cut at ${cut}`)
    assert.equal(stream.done, true)
  }
})

test('base URLs as people write them', () => {
  const of = (url: string): string[] => {
    const { origin, basePath, healthPath, search } = parseEndpoint(url)
    return [origin, basePath, healthPath, ...(search === '' ? [] : [search])]
  }
  assert.deepEqual(of('http://h:8000/v1'), ['http://h:8000', '/v1', '/health'])
  assert.deepEqual(of('https://h/a/v1//'), ['https://h', '/a/v1', '/a/health'])
  assert.deepEqual(of('http://[::1]:8000'), ['http://[::1]:8000', '', '/health'])
  assert.deepEqual(of('https://h/v1/?a=1#x'), ['https://h', '/v1', '/health', '?a=1'])
  for (const wrong of ['h:8000/v1', 'ftp://h', '', 'http://u:p@h/']) {
    assert.throws(() => parseEndpoint(wrong), /--url/)
  }
})
