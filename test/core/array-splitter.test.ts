import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ArraySplitter } from '../../src/core/array-splitter.ts'

/** The elements as text, however the bytes were cut. */
function elements(text: string, cuts: readonly number[]): string[] {
  const bytes = Buffer.from(text)
  const ends = [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])]
  const splitter = new ArraySplitter()
  const found: string[] = []
  let at = 0
  for (const end of ends.sort((a, b) => a - b)) {
    for (;;) {
      const next = splitter.next(bytes, at, end)
      at = next < 0 ? end : next
      if (next < 0) break
      found.push(bytes.toString('utf8', splitter.start, next).trim())
    }
  }
  assert.equal(splitter.state, 'behind')
  return found
}

const value = fc.jsonValue({ maxDepth: 3 })

test('every element of an array is found, whatever its layout and however its bytes are cut', () => {
  const layout = fc.constantFrom(undefined, 1, 2, '\t')
  fc.assert(
    fc.property(fc.array(value), layout, fc.array(fc.nat()), (array, indent, cuts) => {
      const found = elements(JSON.stringify(array, null, indent), cuts)
      assert.deepEqual(
        found.map((text) => JSON.parse(text) as unknown),
        JSON.parse(JSON.stringify(array)),
      )
      assert.ok(found.every((text) => !text.includes('\n')))
    }),
  )
})

test('a lost quote costs its own element alone where elements begin lines', () => {
  const array = Array.from({ length: 5 }, (_, id) => ({ id, text: 'a, {"b": [', n: { m: [id] } }))
  for (const indent of [1, 2, 4]) {
    const lines = JSON.stringify(array, null, indent).split('\n')
    for (let line = 2; line < lines.length - 2; line++) {
      if (!lines[line]!.includes('"text"')) continue
      const broken = lines.with(line, lines[line]!.replace(/",$/, ','))
      const found = elements(broken.join('\n'), [])
      assert.equal(found.length, 5, broken.join('\n'))
      const whole = found.filter((text) => {
        try {
          return JSON.parse(text) !== undefined
        } catch {
          return false
        }
      })
      assert.equal(whole.length, 4)
    }
  }
})

test('a missing element is one of its own', () => {
  assert.deepEqual(elements('[,1,,2]', []), ['', '1', '', '2'])
})
