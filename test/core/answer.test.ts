import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { AnswerCollector, answerFromBody, isFlaw } from '../../src/core/answer.ts'

interface Call {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}

interface Message {
  content: string | null
  reasoning: string
  refusal: string
  calls: Call[]
  logprobs: { token: string; logprob: number }[]
  tokenIds: number[]
}

const text = fc.string({ unit: 'binary', maxLength: 40 })
const call: fc.Arbitrary<Call> = fc.record({
  id: fc.uuid(),
  type: fc.constant('function' as const),
  function: fc.record({ name: fc.constantFrom('look', 'add'), arguments: text }),
})
const message: fc.Arbitrary<Message> = fc.record({
  content: fc.option(text),
  reasoning: text,
  refusal: text,
  calls: fc.array(call, { maxLength: 3 }),
  logprobs: fc.array(fc.record({ token: text, logprob: fc.constantFrom(-1, -0.5) }), {
    maxLength: 4,
  }),
  tokenIds: fc.array(fc.nat(1000), { maxLength: 6 }),
})

/** Where a text or a list is cut. */
const cuts = fc.array(fc.nat(1000), { maxLength: 5 })

function cut<T extends string | readonly unknown[]>(whole: T, at: readonly number[]): T[] {
  const places = [...at.map((n) => n % (whole.length + 1)), 0, whole.length].sort((a, b) => a - b)
  return places.slice(1).map((end, index) => whole.slice(places[index], end) as T)
}

/** The body of an answer that is not streamed. */
function body(message: Message): string {
  const { content, reasoning, refusal, calls, logprobs, tokenIds } = message
  return JSON.stringify({
    model: 'm',
    prompt_token_ids: [1, 2],
    usage: { total_tokens: 3 },
    choices: [
      {
        message: {
          role: 'assistant',
          content,
          ...(reasoning !== '' && { reasoning }),
          ...(refusal !== '' && { refusal }),
          ...(calls.length > 0 && { tool_calls: calls }),
        },
        ...(logprobs.length > 0 && { logprobs: { content: logprobs } }),
        ...(tokenIds.length > 0 && { token_ids: tokenIds }),
        finish_reason: 'stop',
      },
    ],
  })
}

/** The events of the same answer streamed, everything cut at the places given. */
function events(message: Message, at: readonly number[]): string[] {
  const { content, reasoning, refusal, calls, logprobs, tokenIds } = message
  const event = (delta: object, beside: object = {}): object => ({
    model: 'm',
    choices: [{ delta, finish_reason: null, ...beside }],
  })
  const list: object[] = [
    { ...event({ role: 'assistant' }), prompt_token_ids: [1, 2] },
    ...cut(reasoning, at).map((piece) => event({ reasoning: piece })),
  ]
  if (content !== null) list.push(...cut(content, at).map((piece) => event({ content: piece })))
  if (refusal !== '') list.push(...cut(refusal, at).map((piece) => event({ refusal: piece })))
  for (const [index, { id, type, function: f }] of calls.entries()) {
    const first = { index, id, type, function: { name: f.name, arguments: '' } }
    list.push(event({ tool_calls: [first] }))
    for (const piece of cut(f.arguments, at)) {
      list.push(event({ tool_calls: [{ index, function: { arguments: piece } }] }))
    }
  }
  if (logprobs.length > 0) {
    for (const piece of cut(logprobs, at)) list.push(event({}, { logprobs: { content: piece } }))
  }
  for (const piece of cut(tokenIds, at)) {
    if (tokenIds.length > 0) list.push(event({}, { token_ids: piece }))
  }
  list.push({ choices: [{ delta: {}, finish_reason: 'stop' }] })
  list.push({ choices: [], usage: { total_tokens: 3 } })
  return list.map((each) => JSON.stringify(each))
}

describe('an answer put together from a stream', () => {
  test('equals the one that is not streamed, wherever it is cut', () => {
    fc.assert(
      fc.property(message, cuts, (whole, at) => {
        const collector = new AnswerCollector()
        for (const data of events(whole, at)) collector.event(data)
        const streamed = collector.finish(true)
        const plain = answerFromBody(body(whole))
        assert.ok(!isFlaw(streamed) && !isFlaw(plain))
        assert.deepEqual(streamed, plain)
      }),
      { numRuns: 500 },
    )
  })

  test('of several choices the first by index counts, in whatever order they come', () => {
    const pieces = [
      ['a', 'b', 'c', 'd', 'e', 'f', 'g'],
      ['1', '2', '3', '4', '5', '6', '7'],
    ]
    const chunk = (...choices: object[]): string => JSON.stringify({ model: 'm', choices })
    const said = (index: number, at: number): object => ({
      index,
      delta: { content: pieces[index]![at] },
      finish_reason: at === 6 ? ['stop', 'length'][index] : null,
    })
    const eachAlone = (order: readonly number[]) => (_: unknown, at: number) =>
      order.map((index) => chunk(said(index, at)))
    const together = (_: unknown, at: number): string[] => [chunk(said(1, at), said(0, at))]
    const oneByOne = [1, 0].flatMap((index) => pieces[0]!.map((_, at) => chunk(said(index, at))))
    const message = (index: number): object => ({
      index,
      message: { content: pieces[index]!.join('') },
      finish_reason: ['stop', 'length'][index],
    })
    const plain = answerFromBody(chunk(message(1), message(0)))
    assert.deepEqual(plain, answerFromBody(chunk(message(0), message(1))))
    const streams = [
      pieces[0]!.flatMap(together),
      pieces[0]!.flatMap(eachAlone([0, 1])),
      pieces[0]!.flatMap(eachAlone([1, 0])),
      oneByOne,
      [...oneByOne.slice(7), ...oneByOne.slice(0, 7)],
    ]
    for (const data of streams) {
      const collector = new AnswerCollector()
      for (const event of data) collector.event(event)
      assert.deepEqual(collector.finish(true), plain, data[0])
    }
  })

  test('the only choice counts, whatever its index', () => {
    const collector = new AnswerCollector()
    for (const content of ['a', 'b']) {
      collector.event(JSON.stringify({ choices: [{ index: 1, delta: { content } }] }))
    }
    collector.event('{"choices":[null,{"index":1,"delta":{},"finish_reason":"stop"}]}')
    const answer = collector.finish(true)
    assert.ok(!isFlaw(answer))
    assert.equal(answer.content, 'ab')
  })

  test('content in parts: text parts go on, others stand by themselves', () => {
    const parts = [
      [{ type: 'text', text: 'a' }],
      [{ type: 'text', text: 'b' }],
      [{ type: 'image_url', image_url: { url: 'u' } }],
      [{ type: 'text', text: 'c' }],
    ]
    const collector = new AnswerCollector()
    for (const content of parts) {
      collector.event(JSON.stringify({ choices: [{ delta: { content } }] }))
    }
    collector.event('{"choices":[{"delta":{},"finish_reason":"stop"}]}')
    const answer = collector.finish(true)
    assert.ok(!isFlaw(answer))
    assert.deepEqual(answer.content, [
      { type: 'text', text: 'ab' },
      { type: 'image_url', image_url: { url: 'u' } },
      { type: 'text', text: 'c' },
    ])
  })
})
