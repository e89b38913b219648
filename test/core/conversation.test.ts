import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type Turn, TurnReader } from '../../src/core/conversation.ts'
import { JsonScanner, PADDING } from '../../src/core/json-scan.ts'
import { LongStrings } from '../../src/core/long-strings.ts'

/** The turns of a conversation, with what they mean as text. */
function turnsOf(text: string): (Omit<Turn, 'start' | 'end' | 'content'> & { content: unknown })[] {
  const bytes = Buffer.from(`${text}${'\n'.repeat(PADDING)}`)
  const scanner = new JsonScanner()
  scanner.use(bytes)
  const end = scanner.value(0)
  const reader = new TurnReader()
  reader.begin(bytes, { start: 0, end }, scanner.longStrings)
  const turns: ReturnType<typeof turnsOf> = []
  for (let turn = reader.next(); turn !== undefined; turn = reader.next()) {
    const { start, end: turnEnd, content, others, ...more } = turn
    assert.ok(bytes[start] === 0x7b && bytes[turnEnd - 1] === 0x7d)
    const value = content && JSON.parse(bytes.toString('utf8', content.start, content.end))
    turns.push({ ...more, others: others.map(() => ({ start: 0, end: 0 })), content: value })
  }
  return turns
}

const content = fc.oneof(
  fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
  fc.string({ unit: fc.constantFrom('"', '\\', '}', 'é', ' a') }),
  fc.integer({ min: 200, max: 700 }).map((length) => 'x"}\\'.repeat(length / 4)),
)
const turn = fc.record({
  key: fc.constantFrom(['role', 'content'] as const, ['from', 'value'] as const),
  role: fc.constantFrom(
    'user',
    'assistant',
    'system',
    'human',
    'gpt',
    'developer',
    'usher',
    'tool',
  ),
  content,
  more: fc.constantFrom({}, { name: 'n' }, { content: 'last' }, { weight: 1 }),
})

describe('a turn means the same', () => {
  test('however it is written: as most are, with the spaces of Python, with others', () => {
    fc.assert(
      fc.property(fc.array(turn, { maxLength: 4 }), (given) => {
        const objects = given
          .filter(({ role }) => role !== 'usher')
          .map(
            ({ key: [role, value], role: name, content: text, more }): Record<string, unknown> => ({
              [role]: name,
              [value]: text,
              ...more,
            }),
          )
        const plain = objects.map((object) => JSON.stringify(object))
        const python = plain.map((object) => spaced(object, ' ', ''))
        const odd = plain.map((object) => spaced(object, ' ', ' '))
        const expected = turnsOf(`[${odd.join(' , ')}]`)
        assert.deepEqual(turnsOf(`[${plain.join(',')}]`), expected)
        assert.deepEqual(turnsOf(`[${python.join(', ')}]`), expected)
        assert.deepEqual(
          expected.map((read) => read.content),
          objects.map((object) => object.content ?? object.value),
        )
      }),
      { numRuns: 2000 },
    )
  })
})

/** JSON with white space behind its colons and commas, and inside its braces. */
function spaced(json: string, behind: string, inside: string): string {
  const text = json.replace(/"(?:[^"\\]|\\.)*"|[:,]/gu, (token) =>
    token.length === 1 ? token + behind : token,
  )
  return `{${inside}${text.slice(1, -1)}${inside}}`
}

test('long strings are found by where they begin, in any order', () => {
  const strings = new LongStrings()
  const starts = Array.from({ length: 40 }, (_, index) => index * 1000)
  for (const start of starts) strings.add(start, start + 900)
  for (const start of [0, 5000, 5000, 5001, 31_000, 2000, 7]) {
    assert.equal(strings.endOf(start), start % 1000 === 0 ? start + 900 : -1, `${start}`)
  }
  assert.equal(strings.endOf(39_000), -1, 'no more than a few are kept')
  strings.clear()
  assert.equal(strings.endOf(0), -1)
})
