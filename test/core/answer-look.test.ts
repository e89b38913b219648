import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { fallsShort, isAnswer, isKeyed, lookAtAnswer } from '../../src/core/answer-look.ts'
import { SHORTCOMINGS } from '../../src/core/completed.ts'
import { kernelBytes } from '../../src/core/kernel.ts'
import { KeyRule } from '../../src/core/key.ts'
import { LineJudge } from '../../src/core/line-judge.ts'
import { padded } from '../support/scan.ts'

const kernel = kernelBytes(64 * 1024)!

type Message = Record<string, unknown>
interface Answer {
  conversations?: unknown
  text?: unknown
  finish_reason?: unknown
}

/** What a line of answers falls short of, or undefined where it is no answer with a key. */
function look(bytes: Buffer, length: number): string[] | undefined {
  const judge = new LineJudge({ maxDepth: 64, allow: new Set(['duplicate-key']) })
  judge.begin(bytes, length + 1)
  assert.ok(judge.line(0))
  const told = lookAtAnswer(
    new KeyRule(),
    judge,
    bytes,
    { start: 0, end: length },
    new Int32Array(4),
    0,
  )
  if (!isKeyed(told) || !isAnswer(told)) return undefined
  return SHORTCOMINGS.filter((_, index) => fallsShort(told, index))
}

/** The same from the parsed record, word for word as the contract has it. */
function expected({ conversations, text, finish_reason: finish }: Answer): string[] {
  const found: string[] = []
  if (finish === 'length' || finish === 'content_filter') found.push(finish)
  if (conversations !== undefined) {
    const last = (Array.isArray(conversations) ? conversations.at(-1) : undefined) as Message
    const content = last?.content ?? last?.value
    const calls = last?.tool_calls
    const called = Array.isArray(calls) && calls.length > 0
    if (!called && (content ?? '') === '') found.push('empty')
  } else if (text === '') found.push('empty')
  return SHORTCOMINGS.filter((word) => found.includes(word))
}

const long = 'a "long" text\n with \\ and \u00e9, '.repeat(20)
const content = fc.constantFrom('', 'x', long, '\u0001', null, ['part'])
const message = fc.record(
  {
    role: fc.constantFrom('user', 'assistant'),
    content,
    value: content,
    tool_calls: fc.constantFrom([], [{ id: 1 }]),
  },
  { requiredKeys: ['role'] },
)
const answer = fc.record(
  {
    error: fc.constant(null),
    conversations: fc.oneof(
      { weight: 4, arbitrary: fc.array(message, { maxLength: 3 }) },
      fc.constantFrom('none', null, [1, 'two']),
    ),
    text: fc.constantFrom('', 'x', long, 7),
    finish_reason: fc.constantFrom(
      'stop',
      'length',
      'content_filter',
      null,
      'tool_calls',
      'len\\gth',
    ),
  },
  { requiredKeys: [] },
)

test('what answers fall short of is what their parsed records say, in any memory', () => {
  fc.assert(
    fc.property(answer, fc.boolean(), (record, escaped) => {
      const plain = JSON.stringify({ id: 1, ...record })
      const text = escaped ? plain.replaceAll(/[eé]/g, hex) : plain
      const bytes = padded(Buffer.from(text))
      const length = bytes.indexOf(0x0a)
      const told = look(bytes, length)
      assert.deepEqual(told, expected(JSON.parse(text) as Answer))
      kernel.set(bytes)
      assert.deepEqual(look(kernel, length), told)
    }),
    { numRuns: 3000 },
  )
})

/** Keys and words too may be written with escapes. */
function hex(letter: string): string {
  return `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`
}

test('a member given twice counts as it is given last', () => {
  const of = (text: string): string[] | undefined => look(padded(Buffer.from(text)), text.length)
  assert.deepEqual(of('{"id":1,"text":"x","text":""}'), ['empty'])
  assert.deepEqual(of('{"id":1,"finish_reason":"length","finish_reason":"stop"}'), [])
  assert.deepEqual(of('{"id":1,"conversations":[{"content":"x","content":""}]}'), ['empty'])
  assert.equal(of('{"id":1,"status":"failed"}'), undefined)
  assert.deepEqual(of('{"id":1,"status":"\\u0073uccess"}'), [])
})
