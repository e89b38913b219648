import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Diagnosis, type Finding, type Snapshot } from '../../src/core/diagnosis.ts'
import type { Failure } from '../../src/core/failure.ts'

function told(diagnosis: Diagnosis, failures: Partial<Failure>[]): Finding[] {
  return failures.flatMap((failure) => {
    diagnosis.request()
    return diagnosis.failure({ code: 'closed', message: '', retryable: true, ...failure })
  })
}

const calm: Snapshot = {
  now: 0,
  open: 10,
  unstarted: 2,
  longestWait: 1000,
  loopBusy: 0.2,
  loopTime: 10_000,
  uptime: 100_000,
  outputWait: 0,
}

describe('one cause behind many failures is named once', () => {
  test('cuts at one age are a proxy, by its name where the age is known', () => {
    for (const [seconds, who] of [
      [50, 'HAProxy'],
      [60, 'nginx'],
      [100, 'Cloudflare'],
      [120, 'Cloudflare tunnel'],
      [300, 'GCP'],
    ] as const) {
      const cuts = Array.from({ length: 9 }, (_, i) => ({ silenceMs: seconds * 1000 + i * 20 }))
      const findings = told(new Diagnosis(128), cuts)
      assert.equal(findings.length, 1)
      assert.equal(findings[0]?.code, 'proxy-cut')
      assert.match(findings[0]?.message ?? '', new RegExp(`about ${seconds} s.*${who}`))
    }
  })

  test('an age that no known proxy has is told too', () => {
    const findings = told(
      new Diagnosis(128),
      Array.from({ length: 6 }, () => ({ silenceMs: 45_000 })),
    )
    assert.match(findings[0]?.message ?? '', /about 45 s/)
  })

  test('cuts at all ages, and cuts while data flowed, are none', () => {
    const scattered = Array.from({ length: 40 }, (_, i) => ({ silenceMs: 6000 + 3000 * i }))
    const quick = Array.from({ length: 40 }, () => ({ silenceMs: 20 }))
    assert.deepEqual(told(new Diagnosis(128), [...scattered, ...quick]), [])
  })

  test('kept connections that were closed meanwhile are no cuts, until the silence is a proxy’s', () => {
    const of = (seconds: number): Partial<Failure>[] =>
      Array.from({ length: 9 }, () => ({ stale: true, silenceMs: seconds * 1000 }))
    const codes = (seconds: number): string[] =>
      told(new Diagnosis(128), of(seconds)).map(({ code }) => code)
    // A busy client with a fast clock notices seconds late.
    assert.ok(!codes(9).includes('proxy-cut'))
    assert.ok(codes(60).includes('proxy-cut'))
  })

  test('many 429, and only many', () => {
    const limited = { code: 'http-429', httpStatus: 429 }
    assert.deepEqual(told(new Diagnosis(128), Array(5).fill(limited)), [])
    const findings = told(new Diagnosis(128), Array(30).fill(limited))
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['rate-limited'],
    )
  })

  test('connections found closed, and file descriptors', () => {
    const findings = told(new Diagnosis(128), [
      ...Array(30).fill({ stale: true }),
      ...Array(3).fill({ code: 'descriptors' }),
    ])
    assert.deepEqual(
      findings.map(({ code }) => code),
      ['idle-close', 'descriptors'],
    )
  })

  test('requests that all wait although few are open: the server works for others', () => {
    const diagnosis = new Diagnosis(128)
    assert.deepEqual(diagnosis.look(calm), [])
    assert.deepEqual(diagnosis.look({ ...calm, unstarted: 10, longestWait: 30_000 }), [])
    const queued = { ...calm, unstarted: 10, longestWait: 61_000 }
    assert.equal(diagnosis.look(queued)[0]?.code, 'queued-by-others')
    assert.deepEqual(diagnosis.look(queued), [])
  })

  test('an output that is the bottleneck, once it lasts', () => {
    const diagnosis = new Diagnosis(128)
    const slow = { ...calm, outputWait: 6000 }
    assert.deepEqual(diagnosis.look(slow), [])
    assert.deepEqual(
      diagnosis.look(slow).map(({ code }) => code),
      ['slow-output'],
    )
  })

  test('a client that is the bottleneck: by real time, after its start', () => {
    const codes = (busy: readonly number[], every: number): string[] => {
      const diagnosis = new Diagnosis(128)
      return busy.flatMap((loopBusy, index) =>
        diagnosis
          .look({ ...calm, loopBusy, loopTime: every, uptime: (index + 1) * every })
          .map(({ code }) => code),
      )
    }
    assert.deepEqual(codes(Array(6).fill(0.99), 10_000), ['client-busy'])
    // A clock that runs a hundred times faster looks every tenth of a second.
    assert.deepEqual(codes(Array(100).fill(0.99), 100), [])
    assert.deepEqual(codes(Array(120).fill(0.99), 100), ['client-busy'])
    const start = [...Array(30).fill(1), ...Array(400).fill(0.3)]
    assert.deepEqual(codes(start, 100), [])
    assert.deepEqual(codes([1, 0.3, 1, 0.3, 1, 0.3], 5000), [])
  })
})
