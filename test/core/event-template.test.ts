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

const frame = (data: string): Buffer => Buffer.from(`data: ${data}\n\n`)

test('a read that is one event alone is read as its bytes stand', () => {
  const inside = (id: string, text: string): string => event(text).replace('"x"', `"${id}"`)
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      fc.oneof(fc.string(), fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' })),
      fc.constantFrom('x', 'é', '😀'),
      (first, next, id) => {
        const data = inside(id, first)
        const template = EventTemplate.of({ data, name: 'content', text: first, read })
        if (template === undefined) return
        const well = next.isWellFormed()
        assert.equal(
          template.textOfRead(frame(inside(id, next))),
          well ? next : template.text(inside(id, next)),
        )
      },
    ),
    { numRuns: 2000 },
  )
})

test('any other read is left to be split', () => {
  const template = EventTemplate.of({ data: event('a'), name: 'content', text: 'a', read })
  assert.ok(template)
  const one = frame(event('b'))
  assert.equal(template.textOfRead(one), 'b')
  for (const other of [
    Buffer.concat([one, one]),
    one.subarray(0, -1),
    one.subarray(1),
    Buffer.concat([one, Buffer.from(': keep-alive\n\n')]),
    frame(event('b').replace('"b"', '"b\n\ndata: c"')),
    frame(event('b').replace('"b"', '"\u0001"')),
    frame('[DONE]'),
    Buffer.from(''),
  ]) {
    assert.equal(template.textOfRead(other), undefined, other.toString())
  }
  // Bytes that are no UTF-8 are read as a decoder reads them.
  const broken = Buffer.from(one)
  broken[one.indexOf('b"')] = 0xff
  assert.equal(template.textOfRead(broken), '\ufffd')
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
