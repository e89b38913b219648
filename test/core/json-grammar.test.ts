import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JsonGrammar } from '../../src/core/json-grammar.ts'
import { json } from '../support/arbitraries.ts'
import { grammarState } from '../support/scan.ts'

test('every proper beginning of a value is one, and the whole is complete', () => {
  fc.assert(
    fc.property(json, fc.nat(), (text, random) => {
      const bytes = Buffer.from(text)
      const grammar = new JsonGrammar()
      const cut = random % (bytes.length + 1)
      assert.equal(grammar.feed(bytes, 0, cut), -1)
      assert.equal(grammar.feed(bytes, cut, bytes.length), -1, 'it goes on where it stopped')
      assert.ok(grammar.complete)
    }),
  )
})

test('it stops at the first byte with which nothing can be completed', () => {
  const stops: [string, number][] = [
    ['{"a":1,}', 7],
    ['{"a" 1}', 5],
    ['[1 2]', 3],
    ['01', 1],
    ['-x', 1],
    ['1.e', 2],
    ['1e+x', 3],
    ['tru3', 3],
    ['"\\x"', 2],
    ['"\\u12g4"', 5],
    ['"\x01"', 1],
    ['"\xc3\x28"', 2],
    ['"\xed\xa0\x80"', 2],
    ['"\xc0\x80"', 1],
    ['{}{}', 2],
    ['[]]', 2],
    ['{]', 1],
  ]
  for (const [text, at] of stops) {
    const bytes = Buffer.from(text, 'latin1')
    assert.equal(new JsonGrammar().feed(bytes, 0, bytes.length), at, text)
  }
})

test('the state tells what may come next', () => {
  const states: [string, string][] = [
    ['', 'value'],
    ['{"a":', 'value'],
    ['{"a": ', 'value'],
    ['[', 'first-element'],
    ['[1,', 'value'],
    ['{', 'first-key'],
    ['{"a":1,', 'key'],
    ['{"a"', 'colon'],
    ['{"a":1', 'integer'],
    ['{"a":1 ', 'after'],
    ['{"a":true', 'after'],
    ['{"a":tr', 'literal'],
    ['{"a', 'string'],
    ['"\\', 'escape'],
    ['"\\u00', 'hex'],
    ['"\xe4\xb8', 'utf8'],
    ['-', 'minus'],
    ['0', 'zero'],
    ['1.', 'point'],
    ['1.5', 'fraction'],
    ['1e', 'exponent'],
    ['1e-', 'exponent-sign'],
    ['1e-7', 'exponent-digits'],
    ['true', 'touching'],
    ['{}', 'done'],
  ]
  for (const [text, state] of states) {
    assert.equal(grammarState(Buffer.from(text, 'latin1')), state, text)
  }
})

test('open numbers may go on', () => {
  for (const [text, open] of [
    ['12', true],
    ['12 ', false],
    ['[12', false],
    ['1.', false],
    ['true', false],
  ] as const) {
    const grammar = new JsonGrammar()
    grammar.feed(Buffer.from(text), 0, text.length)
    assert.equal(grammar.openNumber, open, text)
  }
})
