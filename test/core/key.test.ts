import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { test } from 'node:test'
import { JsonScanner, PADDING } from '../../src/core/json-scan.ts'
import { KEY_FIELDS, KeyRule, keyText, lineKey } from '../../src/core/key.ts'

function keyOf(line: string, field?: string, completed = false): string | undefined {
  const text = Buffer.from(line)
  const bytes = Buffer.alloc(text.length + PADDING)
  text.copy(bytes)
  bytes[text.length] = 0x0a
  const scanner = new JsonScanner()
  scanner.use(bytes)
  scanner.value(0)
  const rule = new KeyRule(field)
  const range = completed ? rule.findInCompleted(scanner, bytes) : rule.find(scanner, bytes)
  if (range === undefined) return undefined
  const { bytes: from, start, end } = keyText(bytes, range)
  return Buffer.from(from.subarray(start, end)).toString()
}

test('the fields in their order', () => {
  const expected = [
    'custom_id',
    'id',
    'question_id',
    'uuid',
    'sample_id',
    'conversation_id',
    'index',
  ]
  assert.deepEqual([...KEY_FIELDS], expected)
  for (const [at, field] of expected.entries()) {
    const members = expected
      .slice(at)
      .reverse()
      .map((name) => `"${name}":"${name}"`)
    assert.equal(keyOf(`{${members.join(',')}}`), field)
  }
})

test('only strings and numbers name a record', () => {
  for (const value of ['null', 'true', 'false', '{}', '[]', '[1]']) {
    assert.equal(keyOf(`{"custom_id":${value},"id":5}`), '5')
    assert.equal(keyOf(`{"id":${value}}`), undefined)
  }
  assert.equal(keyOf('{"id":""}'), '')
  assert.equal(keyOf('{"id":-0.50e+7}'), '-0.50e+7')
  assert.equal(keyOf('{"prompt":"p"}'), undefined)
})

test('of a default field given twice the last one counts, however it is spelt', () => {
  assert.equal(keyOf('{"id":1,"id":2}'), '2')
  assert.equal(keyOf('{"id":1,"id":null,"index":3}'), '3')
  assert.equal(keyOf('{"id":1,"\\u0069d":2,"index":3}'), '2')
  assert.equal(keyOf(`{"${'x'.repeat(34)}":1,"index":3}`), '3')
})

test('with a field of its own only that one counts', () => {
  assert.equal(keyOf('{"id":1,"m":{"k":2}}', 'm.k'), '2')
  assert.equal(keyOf('{"id":1,"m":{"k":{"x":3}}}', 'm.k'), undefined)
  assert.equal(keyOf('{"id":1,"m":[{"k":2}]}', 'm.k'), undefined)
  assert.equal(keyOf('{"m":{"k":1,"k":2},"m":{"k":3,"k":4}}', 'm.k'), '4')
  assert.equal(keyOf('{"m":{"k":1},"m.k":9}', 'm.k'), '9')
  const own =
    '{"id":"a","status":"success","request_hash":"0123456789abcdef","input":{"m":{"x":1}}}'
  assert.equal(keyOf(own, 'm.k', true), 'a')
  assert.equal(keyOf(own.replace('"x":1', '"k":7'), 'm.k', true), '7')
})

test("in an answer of fanout-complete the members of its own are none of the record's", () => {
  const own =
    '{"id":"a","status":"success","text":"4","model":"m","request_hash":"0123456789abcdef","input":{}}'
  for (const field of ['text', 'model', 'status', 'request_hash', 'id']) {
    assert.equal(keyOf(own, field, true), 'a')
    const inside = own.replace('"input":{}', `"input":{"${field}":"i"}`)
    assert.equal(keyOf(inside, field, true), 'i')
  }
  // An answer that was asked about: what it holds under `input` is one step deeper.
  const nested = own.replace('"input":{}', '"input":{"request_hash":"f","input":{"k":2}}')
  assert.equal(keyOf(nested, 'input.k', true), '2')
  assert.equal(keyOf(nested, 'k', true), 'a')
  assert.equal(keyOf('{"id":"a","status":"done","text":"x"}', 'status', true), 'done')
  const batch = '{"id":"batch_req_1","custom_id":"c","response":{"status_code":200},"error":null}'
  assert.equal(keyOf(batch, 'id', true), 'c')
  assert.equal(keyOf(batch, 'metadata.k', true), 'c')
  assert.equal(keyOf('{"id":"q","custom_id":"c","response":{}}', 'id', true), 'q')
})

test('a failure record has the key of what it stands for, its id', () => {
  const failed =
    '{"id":"a","status":"error","error":{"code":"x"},"input":{"k":1},"k":9,"custom_id":"c"}'
  for (const field of [undefined, 'k', 'status', 'error.code', 'input.k']) {
    assert.equal(keyOf(failed, field), 'a')
    assert.equal(keyOf(failed, field, true), 'a')
    assert.equal(keyOf(failed.replace('"input":{"k":1}', '"input_text":"no"'), field), 'a')
  }
  for (const other of [
    failed.replace('"error",', '"failed",'),
    failed.replace('{"code":"x"}', 'null'),
    failed.replace('"id":"a"', '"id":null'),
    failed.replace('"input":', '"output":'),
  ]) {
    assert.equal(keyOf(other, 'k'), '9')
    assert.equal(keyOf(other), 'c')
  }
})

test('the key of a line without one', () => {
  const hash = (text: string): string =>
    `sha256:${createHash('sha256').update(text).digest('hex').slice(0, 16)}`
  const line = Buffer.from(' \t{"a": "é"}\r')
  assert.equal(lineKey(line, 0, line.length), hash('{"a": "é"}'))
})
