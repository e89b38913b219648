import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { EventTemplate } from '../../src/core/event-template.ts'

type Event = { choices: { delta: { content: string } }[] }

const read = (data: string): string | undefined => {
  try {
    return (JSON.parse(data) as Event).choices[0]?.delta.content
  } catch {
    return undefined
  }
}
const event = (text: string, space = ''): string =>
  `{"id":"x","choices":[{"index":0,"delta":{"content":${space}${JSON.stringify(text)}},"finish_reason":null}]}`

test('reads what JSON.parse reads, or nothing', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'binary' }), (first, next) => {
      const template = EventTemplate.of({ data: event(first), name: 'content', text: first, read })
      if (template === undefined) return
      assert.equal(template.text(event(next)), next)
    }),
    { numRuns: 2000 },
  )
})

test('any other data is left to the parser', () => {
  for (const space of ['', ' ']) {
    const template = EventTemplate.of({ data: event('a', space), name: 'content', text: 'a', read })
    assert.ok(template)
    const good = event('b', space)
    assert.equal(template.text(good), 'b')
    const others = [
      good.replace('"b"', 'null'),
      good.replace('"b"', '"b","role":"assistant"'),
      good.replace('"b"', '"b'),
      good.replace('"b"', 'b"'),
      good.replace('"b"', '"\u0001"'),
      good.replace('"b"', '"\\x"'),
      good.replace('null}]', '"stop"}]'),
      good.replace('"x"', '"y"'),
      good.slice(0, -1),
      `${good} `,
      '',
      '[DONE]',
    ]
    for (const other of others) assert.equal(template.text(other), undefined, other)
  }
})

test('a name that stands elsewhere first is no template', () => {
  const data = `{"content":"a",${event('a').slice(1)}`
  assert.equal(EventTemplate.of({ data, name: 'content', text: 'a', read }), undefined)
})

test('a text that the server escapes otherwise waits for the next one', () => {
  const data = event('a').replace('"a"', '"\\u0061"')
  assert.equal(EventTemplate.of({ data, name: 'content', text: 'a', read }), undefined)
})
