import { SampleReader } from '../../core/answer-sample.ts'
import { KeyRule } from '../../core/key.ts'
import { KnownLines } from '../../core/known-lines.ts'
import type { RunReport } from '../../core/run-report.ts'
import type { UseObject } from '../object-lines.ts'

/**
 * Takes records of answers and failures into a report. A record with an answer is answered, whatever
 * stands before or after it; the same line twice is one.
 */
export function recordsInto(report: RunReport): UseObject {
  const samples = new SampleReader()
  const keys = new KeyRule()
  const lines = new KnownLines()
  const { failures } = report
  return (scanner, bytes, range) => {
    const named = keys.find(scanner, bytes)
    const sample = samples.read(scanner, bytes, range)
    if (sample === undefined) return false
    const key = named && keys.fingerprint(bytes, named)
    if (typeof sample === 'string') {
      failures.fail(sample, key)
      if (key !== undefined && lines.hasKey(key)) failures.answer(key)
      return true
    }
    if (key !== undefined) {
      if (lines.isKnown(key, bytes, range)) {
        report.repeated++
        return true
      }
      failures.answer(key)
    }
    report.answer(sample)
    return true
  }
}
