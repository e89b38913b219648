import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { canonicalJson } from '../../src/core/canonical-json.ts'

test('sorted keys, no white space, numbers as written', () => {
  assert.equal(
    canonicalJson('{ "b" : [1.0, -0,\t12345678901234567890 ,1e400],\r\n"a":{"d":null,"c":true}}'),
    '{"a":{"c":true,"d":null},"b":[1.0,-0,12345678901234567890,1e400]}',
  )
  assert.equal(canonicalJson(' "\\u0041\\/\\ud800" '), '"A/\\ud800"')
  assert.equal(canonicalJson('{"a":1,"\\u0061":2}'), '{"a":2}')
  assert.equal(canonicalJson('{"stream":1,"a":{"stream":2}}', ['stream']), '{"a":{"stream":2}}')
  assert.equal(canonicalJson('{"a":"\\\\","b":"\\\\\\"{["}'), '{"a":"\\\\","b":"\\\\\\"{["}')
  assert.equal(canonicalJson('{"__proto__":{"x":[]},"":{}}'), '{"":{},"__proto__":{"x":[]}}')
})

test('means the same, and is the same for every spelling', () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const text = JSON.stringify(value)
      const one = canonicalJson(text)
      assert.deepEqual(JSON.parse(one), JSON.parse(text))
      assert.equal(canonicalJson(JSON.stringify(value, null, indent)), one)
      assert.equal(canonicalJson(one), one)
    }),
  )
})

test('a string of 20 MB', () => {
  const text = JSON.stringify({ a: 'x"\\'.repeat(7_000_000) })
  assert.ok(canonicalJson(text) === text)
})
