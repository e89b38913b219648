import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { type ExpectedAnswer, expectedAnswer } from '../../src/simulator/answer.ts'
import type { SimulatorOptions } from '../../src/simulator/options.ts'
import { chatBody } from './client.ts'
import { mean } from './virtual-load.ts'

function answers(count: number, options: SimulatorOptions, more = {}): ExpectedAnswer[] {
  return Array.from({ length: count }, (_, i) => expectedAnswer(chatBody(`q${i}`, more), options))
}

function lengths(list: readonly ExpectedAnswer[]): number[] {
  return list.map(({ usage }) => usage.completion_tokens)
}

describe('answers', () => {
  it('are the same for the same seed, model and messages, and for nothing else', () => {
    const options = { meanTokens: 50 }
    const answer = expectedAnswer(chatBody('hi'), options)
    assert.deepEqual(expectedAnswer(chatBody('hi'), options), answer)
    assert.deepEqual(expectedAnswer(chatBody('hi', { temperature: 1 }), options), answer)
    for (const other of [
      expectedAnswer(chatBody('ho'), options),
      expectedAnswer(chatBody('hi'), { ...options, seed: 1 }),
      expectedAnswer(chatBody('hi'), { ...options, model: 'other' }),
      expectedAnswer(chatBody('hi', { seed: 1 }), options),
    ]) {
      assert.notEqual(other.content, answer.content)
    }
  })

  it('have lengths with the mean asked for', () => {
    const options = { meanTokens: 100, maxTokens: 100_000, maxModelLen: 200_000 }
    const mostly = mean(lengths(answers(5_000, options)))
    assert.ok(Math.abs(mostly / 100 - 1) < 0.05, `${mostly}`)
    assert.deepEqual(new Set(lengths(answers(50, { ...options, lengthSigma: 0 }))), new Set([100]))
  })

  it('are cut at maxTokens, with finish_reason length', () => {
    const list = answers(500, { meanTokens: 80, maxTokens: 100 })
    assert.ok(list.some(({ finish_reason }) => finish_reason === 'length'))
    for (const { usage, finish_reason } of list) {
      assert.ok(usage.completion_tokens <= 100)
      if (usage.completion_tokens < 100) assert.equal(finish_reason, 'stop')
    }
  })

  it('fit into the context', () => {
    const [answer] = answers(1, { meanTokens: 500, lengthSigma: 0, maxModelLen: 100 })
    assert.deepEqual([answer!.usage.total_tokens, answer!.finish_reason], [100, 'length'])
    const [cached] = answers(1, { meanTokens: 500, lengthSigma: 0, kvCacheTokens: 80 })
    assert.equal(cached!.usage.total_tokens, 80)
  })

  it('share their tokens between reasoning and content', () => {
    const shareOf = ({ usage }: ExpectedAnswer): number =>
      usage.completion_tokens_details.reasoning_tokens / usage.completion_tokens
    for (const reasoningShare of [0.2, 0.4, 0.8]) {
      const list = answers(1_000, { meanTokens: 100, reasoningShare })
      assert.ok(Math.abs(mean(list.map(shareOf)) - reasoningShare) < 0.02)
      for (const { reasoning, content } of list) assert.ok(reasoning !== '' || content !== '')
    }
    const list = answers(100, { meanTokens: 20, reasoningShare: 0 })
    assert.ok(list.every(({ reasoning, content }) => reasoning === '' && content !== ''))
  })

  it('that stop by themselves have content', () => {
    const list = answers(500, { meanTokens: 3, reasoningShare: 0.9 })
    assert.ok(
      list.every(({ content, finish_reason }) => finish_reason !== 'stop' || content !== ''),
    )
  })

  it('hold what breaks byte handling', () => {
    const text = answers(100, { meanTokens: 200 })
      .map(({ content }) => content)
      .join('')
    for (const part of ['"', '\\', '\n', '\r\n', '\u2028', '\u0001', 'é', '数', '🚀', '[DONE]']) {
      assert.ok(text.includes(part), JSON.stringify(part))
    }
    assert.ok(text.isWellFormed?.() ?? true)
  })
})
