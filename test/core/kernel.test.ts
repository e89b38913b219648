import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { type LookOrder, lookFor } from '../../src/core/block-look.ts'
import { JsonScanner, MEMBER_STRIDE } from '../../src/core/json-scan.ts'
import { kernelBytes, kernelOf } from '../../src/core/kernel.ts'
import { KEY_COLUMNS } from '../../src/core/key-look.ts'
import { ALLOWABLE } from '../../src/core/line-judge.ts'
import { json } from '../support/arbitraries.ts'
import { padded } from '../support/scan.ts'

const RUNS = Number(process.env.PROPERTY_RUNS ?? 1500)
const SIZE = 4 * 1024 * 1024
const kernel = kernelBytes(SIZE)!

/** The same bytes in memory of the kernel, with other bytes behind them. */
function inKernel(bytes: Buffer): Buffer {
  kernel.set(bytes)
  kernel.fill('"}]\\u0', bytes.length, bytes.length + 64)
  return kernel
}

const ALLOWED = ['duplicate-key', 'lone-surrogate', 'too-deep']
const RECORDS = { maxDepth: Number.MAX_SAFE_INTEGER, allow: new Set(ALLOWED) }
const ANY = { maxDepth: 2, allow: new Set<string>(ALLOWABLE) }
const STRICT = { maxDepth: 2, allow: new Set<string>() }

const ORDERS: LookOrder[] = [
  { kind: 'keys', policy: RECORDS, key: undefined },
  { kind: 'keys', policy: RECORDS, key: 'id' },
  { kind: 'keys', policy: RECORDS, key: 'error' },
  { kind: 'keys', policy: RECORDS, key: 'm.x' },
  { kind: 'keys', policy: RECORDS, key: 'sixteen_letters_' },
  { kind: 'keys', policy: RECORDS, key: 'seventeen_letters' },
  { kind: 'keys', policy: STRICT, key: undefined },
  { kind: 'answers', policy: RECORDS, key: undefined },
  { kind: 'answers', policy: RECORDS, key: 'id' },
  { kind: 'clean', policy: STRICT },
  { kind: 'clean', policy: ANY },
]

const NAMES = `custom_id id question_id uuid index m.x error status input input_text x é
sixteen_letters_ seventeen_letters sixteen_letters_2`.split(/\s/)
const name = fc.constantFrom('', ...NAMES)

/** A name as JSON has it, now and then with an escape. */
const token = fc
  .tuple(name, fc.nat(9))
  .map(([text, escaped]) =>
    escaped > 0 || text === '' || text === 'é'
      ? JSON.stringify(text)
      : `"\\u00${text.charCodeAt(0).toString(16)}${text.slice(1)}"`,
  )

const SCALARS = String.raw`1 -0.5e+3 "" "a" "a\n" "\u0061" null true "error" {"x":1} [] {}
"0123456789abcdef" "0123456789abcdef0" "\ud83d\ude00" "\ude00"`.split(/\s/)
const scalar = fc.constantFrom(...SCALARS, `"${'long '.repeat(60)}"`)

const record = fc
  .tuple(
    fc.array(fc.tuple(token, fc.oneof(scalar, json)), { maxLength: 7 }),
    fc.constantFrom('', ' ', '\t'),
    fc.constantFrom('', '', ' ', '\r'),
  )
  .map(([members, gap, behind]) => {
    const inside = members.map(([key, value]) => `${gap}${key}${gap}:${gap}${value}`)
    return `${gap}{${inside.join(',')}${gap}}${behind}`
  })

const failed = record.map(
  (input) =>
    `{"id":"a","status":"error","error":{"code":"x"},"input":${input.trim()},"custom_id":"b"}`,
)

/** One of the first ones mostly. */
function mostly(usual: readonly string[], odd: readonly string[]): fc.Arbitrary<string> {
  return fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...usual) },
    { weight: 1, arbitrary: fc.constantFrom(...odd) },
  )
}

const WHOLE_MESSAGES = `{"role":"assistant","content":"a"}
{"value":"v"}
{"content":"","content":"a"}
{"content":null,"value":"v"}
{ "content" : "a" , "tool_calls" : null }
{"content":"LONG","reasoning_content":"LONG"}`
  .replaceAll('LONG', 'long '.repeat(99))
  .split('\n')
const ODD_MESSAGES = String.raw`{}
"text"
[]
{"content":""}
{"value":""}
{"content":1}
[{"content":"a"}]
{"content":"a","tool_calls":[{"content":"b"}]}
{"content":"a","content":""}
{"\u0063ontent":"a"}`.split('\n')
const messages = fc
  .array(mostly(WHOLE_MESSAGES, ODD_MESSAGES), { minLength: 1, maxLength: 3 })
  .map((all) => `[${all.join(', ')}]`)
const rarely = (...values: string[]): fc.Arbitrary<string | null> =>
  fc.oneof({ weight: 9, arbitrary: fc.constant(null) }, fc.constantFrom(...values))

/** Answers in fanout-complete's form, most of them whole. */
const answer = fc
  .tuple(
    fc.record({
      id: mostly(['"a"', '7'], ['"a\\n"', 'null']),
      status: mostly(['"success"'], ['"completed"', '"error"', 'null', '1', '"\\u0073uccess"']),
      finish_reason: mostly(['"stop"', 'null'], ['"length"', '"content_filter"', '"l\\u0065ngth"']),
      input: mostly(
        ['{"messages":[{"content":"q"}]}'],
        ['[[{"content":"q"}]]', '[{"content":""}]'],
      ),
      conversations: fc.oneof(
        { weight: 8, arbitrary: messages },
        fc.constantFrom('[]', '[ ]', '{"x":{"content":"a"}}', 'null', '"a"'),
      ),
      text: rarely('"a"', '""', 'null', '["a"]'),
      error: rarely('null', '{}'),
      turns: rarely('[]', '[{"finish_reason":"length"}]'),
      response: rarely('{"status_code":500}', '{"body":{"text":""}}'),
      choices: rarely('[{"text":""}]', '[]'),
    }),
    fc.array(fc.nat(), { maxLength: 10 }),
    fc.nat(5),
  )
  .map(([{ conversations, ...others }, order, roll]) => {
    const all = { ...others, conversations: roll === 0 ? null : conversations }
    const mixed = Object.entries(all)
      .filter(([, value]) => value !== null)
      .map(([key, value], index) => ({ text: `"${key}": ${value}`, place: order[index] ?? 0 }))
    mixed.sort((one, other) => one.place - other.place)
    return `{${mixed.map(({ text }) => text).join(',')}}`
  })

/** Lines of which most are records. */
const block = fc
  .tuple(
    fc.array(
      fc.oneof(
        { weight: 40, arbitrary: record },
        { weight: 4, arbitrary: failed },
        { weight: 20, arbitrary: answer },
        json,
        fc.constantFrom('', ' ', '{', '{"id":1}{"id":2}', '\ufeff{"id":1}', '[[[]]]', '12'),
      ),
      { maxLength: 5 },
    ),
    fc.constantFrom('\n', '\n', '\n', ''),
  )
  .map(([lines, end]) =>
    Buffer.from(lines.map((line) => line.replaceAll('\n', '')).join('\n') + end),
  )

test('looks over blocks tell the same with the kernel and without', () => {
  const looks = ORDERS.map((order) => ({ order, look: lookFor(order) }))
  let tables = 0
  fc.assert(
    fc.property(block, (bytes) => {
      const plain = padded(bytes)
      for (const { order, look } of looks) {
        const expected = look(plain, bytes.length)
        const found = look(inKernel(plain), bytes.length)
        assert.deepEqual(found, expected, JSON.stringify(order))
        if (expected !== undefined) tables++
      }
    }),
    { numRuns: RUNS },
  )
  assert.ok(tables > RUNS, `only ${tables} looks told something`)
})

test('more lines than the kernel has rows, one of them left to JavaScript', () => {
  for (const odd of [0, 2047, 2048, 4095, 4999]) {
    const lines = Array.from({ length: 5000 }, (_, i) => `{"id":${i},"text":"record ${i}"}`)
    lines[odd] = '{"text":"no key"}'
    const bytes = Buffer.from(`${lines.join('\n')}\n`)
    const look = lookFor({ kind: 'keys', policy: RECORDS, key: undefined })
    const expected = look(padded(bytes), bytes.length) as Int32Array
    assert.equal(expected.length, 5000 * KEY_COLUMNS)
    assert.deepEqual(look(inKernel(padded(bytes)), bytes.length), expected)
  }
})

test('the kernel leaves no plain record to JavaScript', () => {
  const question = '{"id":1,"prompt":"p","input":{"error":"none"}}'
  const answers = WHOLE_MESSAGES.map(
    (message) => `{"id":"a","status":"success","conversations":[{"content":"q"},${message}]}`,
  )
  for (const [kind, lines] of [
    ['keys', [question, ...answers]],
    ['answers', [...answers, '{"id":1,"text":"a","finish_reason":"stop"}']],
  ] as const) {
    const text = Buffer.from(`${lines.join('\n')}\n`)
    const bytes = inKernel(padded(text))
    assert.ok(lookFor({ kind, policy: RECORDS, key: undefined })(bytes, text.length))
    assert.equal(kernelOf(bytes)!.run.nextLine(), text.length)
    assert.equal(kernelOf(bytes)!.run.rowsLeft(), 0, kind)
  }
})

/** What a scanner tells of a value. */
function told(bytes: Buffer): unknown {
  const scanner = new JsonScanner()
  scanner.use(bytes)
  const end = scanner.value(0)
  if (end < 0) return end
  const { memberCount, depth, suspect } = scanner
  const members = Array.from(scanner.members.subarray(0, memberCount * MEMBER_STRIDE))
  const strings = Array.from({ length: end }, (_, at) => scanner.longStrings.endOf(at))
  return { end, memberCount, members, depth, suspect, strings }
}

test('members, depth and long strings of a value, with the kernel and without', () => {
  const wide = (count: number): string =>
    `{${Array.from({ length: count }, (_, i) => `"k${i}":${i}`).join(',')}}`
  const deep = (depth: number): string => `${'[{"a":'.repeat(depth)}1${'}]'.repeat(depth)}`
  const values = [
    ...[1, 63, 64, 65, 255, 256, 257, 3000].map(wide),
    ...[1, 126, 127, 128, 129, 500].map(deep),
    `[${Array.from({ length: 40 }, () => `"${'y'.repeat(300)}"`).join(',')}]`,
    `{"a":"${'x'.repeat(254)}","b":"${'x'.repeat(255)}","c":{"d":"${'é\\n'.repeat(200)}"}}`,
    `[${Array.from({ length: 50 }, (_, i) => wide(i)).join(',')}]`,
    `${wide(40).slice(0, -1)},"k7":1}`,
    `{"${'k'.repeat(15)}":1,"${'k'.repeat(16)}":1,"${'k'.repeat(17)}":1,"${'k'.repeat(40)}":1}`,
    `{"${'k'.repeat(40)}":1,"x":2,"${'k'.repeat(40)}":1}`,
  ]
  for (const value of values) {
    const bytes = padded(Buffer.from(value))
    assert.deepEqual(told(inKernel(bytes)), told(bytes), value.slice(0, 60))
  }
})
