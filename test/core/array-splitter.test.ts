import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ArraySplitter } from '../../src/core/array-splitter.ts'

/** The elements as text, and what else was found, however the bytes were cut. */
function elements(text: string, cuts: readonly number[]): string[] {
  const bytes = Buffer.from(text)
  const ends = [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])]
  const splitter = new ArraySplitter()
  const found: string[] = []
  let at = 0
  for (const end of ends.sort((a, b) => a - b)) {
    do {
      at = splitter.next(bytes, at, end)
      if (splitter.found === 'element') {
        found.push(bytes.toString('utf8', splitter.start, splitter.end))
      } else if (splitter.found !== undefined) found.push(splitter.found)
    } while (splitter.found !== undefined)
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
    }),
  )
})

test('a missing element is one of its own', () => {
  assert.deepEqual(elements('[,1,,2]', []), ['missing', '1', 'missing', '2'])
})
