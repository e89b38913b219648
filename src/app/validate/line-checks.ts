import { findField, parseField } from '../../core/field.ts'
import { FingerprintTable } from '../../core/fingerprint-table.ts'
import type { JsonScanner } from '../../core/json-scan.ts'
import { KeyRule, scalarKey } from '../../core/key.ts'
import { FormChecker } from '../../core/record-form.ts'
import type { ValidateOptions } from './options.ts'

/** One problem of a line; `at` is an offset in the block, absent for the line as a whole. */
export interface Finding {
  code: string
  message: string
  at?: number
}

/** A line whose grammar holds; the scanner has read it, and must stand so again afterwards. */
export interface CheckedLine {
  bytes: Buffer
  start: number
  end: number
  scanner: JsonScanner
}

/** What is checked of a line beyond its grammar. */
export type LineCheck = (line: CheckedLine) => Finding[]

/**
 * The checks that the options ask for, in the order in which they are reported.
 *
 * @throws ToolError for a schema that cannot be read or is none
 */
export async function lineChecks(options: ValidateOptions): Promise<LineCheck[]> {
  const checks: LineCheck[] = []
  if (options.requireObject || options.require.length > 0)
    checks.push(requireCheck(options.require))
  if (options.as !== 'any') {
    const checker = new FormChecker(options.as)
    checks.push((line) => checker.check(parsed(line), line.end + 1 - line.start))
  }
  if (options.schema !== undefined) {
    const { schemaCheck } = await import('./schema-check.ts')
    const check = await schemaCheck(options.schema)
    checks.push((line) => check(parsed(line)))
  }
  if (options.unique !== undefined) checks.push(uniqueCheck(options.unique))
  return checks
}

function parsed({ bytes, start, end }: CheckedLine): unknown {
  return JSON.parse(bytes.toString('utf8', start, end))
}

function requireCheck(names: readonly string[]): LineCheck {
  const fields = names.map(parseField)
  return ({ bytes, start, scanner }) => {
    const end = scanner.value(start)
    if (bytes[end - 1] !== 0x7d) return [{ code: 'not-object', message: 'the value is no object' }]
    const missing: Finding[] = []
    for (const field of fields) {
      if (findField(scanner, bytes, field) === undefined) {
        missing.push({ code: 'missing-field', message: `the object has no field '${field.name}'` })
      }
      if (field.steps.length > 1) scanner.value(start)
    }
    return missing
  }
}

/** Values are told apart as keys are; a record without the field, or with no scalar, is passed. */
function uniqueCheck(name: string): LineCheck {
  const rule = new KeyRule(name)
  const field = parseField(name)
  const seen = new FingerprintTable(1)
  let lines = 0
  return ({ bytes, start, scanner }) => {
    lines++
    scanner.value(start)
    const value = scalarKey(bytes, findField(scanner, bytes, field))
    if (value === undefined) return []
    const fingerprint = rule.fingerprint(bytes, value)
    if (seen.place(fingerprint)) {
      const first = seen.array[seen.at]!
      const text = bytes.toString('utf8', value.start, Math.min(value.end, value.start + 80))
      const message = `${name} ${text} stands in an earlier record too (number ${first} of all)`
      return [{ code: 'not-unique', message, at: value.start }]
    }
    seen.array[seen.at] = lines
    return []
  }
}
