import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FAILURES, isRetriedStatus, networkFailure } from '../../src/core/failure.ts'
import { withoutSecret } from '../../src/core/mask.ts'
import { parseParameters } from '../../src/core/parameters.ts'
import {
  RETRY_DEFAULTS,
  retryAfterOf,
  retryDelay,
  shouldRetryOf,
} from '../../src/core/retry-policy.ts'

const settings = { ...RETRY_DEFAULTS, retries: 5 }

test('full jitter: from nothing to the exponential backoff, 1 s to 60 s', () => {
  for (const [attempt, most] of [
    [1, 1000],
    [2, 2000],
    [3, 4000],
    [6, 32_000],
    [7, 60_000],
    [50, 60_000],
    [2000, 60_000],
  ] as const) {
    assert.equal(
      retryDelay(settings, attempt, undefined, () => 0),
      0,
    )
    assert.equal(
      retryDelay(settings, attempt, undefined, () => 0.5),
      most / 2,
    )
  }
})

test('the time that a server names is waited at least, also beyond the cap', () => {
  for (const random of [0, 0.5, 0.999]) {
    const delay = retryDelay(settings, 1, 100_000, () => random)
    assert.ok(delay >= 100_000 && delay <= 110_000)
  }
})

test('a server that asks for no pause gets the usual one, or all come back together', () => {
  assert.equal(
    retryDelay(settings, 3, 0, () => 0.9),
    retryDelay(settings, 3, undefined, () => 0.9),
  )
})

test('Retry-After in its forms', () => {
  const now = Date.parse('2026-11-29T02:14:00Z')
  const of = (headers: Record<string, string>): number | undefined => retryAfterOf(headers, now)
  assert.equal(of({}), undefined)
  assert.equal(of({ 'retry-after': '7' }), 7000)
  assert.equal(of({ 'retry-after': ' 0.5 ' }), 500)
  assert.equal(of({ 'retry-after': 'Sun, 29 Nov 2026 02:14:30 GMT' }), 30_000)
  assert.equal(of({ 'retry-after': 'Sun, 29 Nov 2026 02:13:30 GMT' }), 0)
  assert.equal(of({ 'retry-after': 'Sunday, 29-Nov-26 02:14:30 GMT' }), 30_000)
  assert.equal(of({ 'retry-after': 'Sun Nov 29 02:14:30 2026' }), 30_000)
  assert.equal(of({ 'retry-after': 'Tue Dec  1 02:14:00 2026' }), 2 * 86_400_000)
  assert.equal(of({ 'retry-after-ms': '1500', 'retry-after': '7' }), 1500)
  assert.equal(of({ 'retry-after-ms': 'x', 'retry-after': '7' }), 7000)
  for (const nonsense of ['soon', '', '-5', '1e3x', 'May 1', 'Sun Nov 29 2026'])
    assert.equal(of({ 'retry-after': nonsense }), undefined)
})

test('x-should-retry', () => {
  assert.equal(shouldRetryOf({ 'x-should-retry': 'true' }), true)
  assert.equal(shouldRetryOf({ 'x-should-retry': 'false' }), false)
  assert.equal(shouldRetryOf({ 'x-should-retry': 'perhaps' }), undefined)
  assert.equal(shouldRetryOf({}), undefined)
})

test('which statuses are retried', () => {
  const retried = Array.from({ length: 300 }, (_, i) => i + 300).filter(isRetriedStatus)
  assert.deepEqual(retried, [408, 409, 425, 429, 500, 502, 503, 504, 529])
})

test('errors of the network have a code of the table, and are retried', () => {
  for (const code of [
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'ECONNRESET',
    'EPIPE',
    'UND_ERR_SOCKET',
    'EWHATEVER',
  ]) {
    const failure = networkFailure(Object.assign(new Error('x'), { code }))
    assert.ok(failure.code in FAILURES, failure.code)
    assert.equal(failure.retryable, true)
    assert.notEqual(failure.message, '')
  }
})

test('--param: dots reach inside, the text of numbers stays', () => {
  const of = (...given: string[]): Record<string, string> =>
    Object.fromEntries(parseParameters(given))
  assert.deepEqual(of('a=1.0', 'b.c={"x": 1e400}', 'b.d.e=[]', 'f="a=b.c"'), {
    a: '1.0',
    b: '{"c":{"x": 1e400},"d":{"e":[]}}',
    f: '"a=b.c"',
  })
  assert.deepEqual(of('a=1', 'a=2'), { a: '2' })
  assert.deepEqual([...parseParameters(['__proto__=1']).keys()], ['__proto__'])
  for (const wrong of [['a'], ['=1'], ['a='], ['a=x'], ['a=1', 'a.b=2']]) {
    assert.throws(() => parseParameters(wrong), /--param/)
  }
})

test('a secret is masked, also where an excerpt cuts it', () => {
  const of = (text: string): string => withoutSecret(text, 'sk-secret-12345')
  assert.equal(of('a sk-secret-12345 b sk-secret-12345'), 'a *** b ***')
  assert.equal(of('a sk-secr… and sk-secret-1234…'), 'a ***… and ***…')
  assert.equal(of('sk-secret-12345…'), '***…')
  assert.equal(of('nothing… sk-… s…'), 'nothing… sk-… s…')
})
