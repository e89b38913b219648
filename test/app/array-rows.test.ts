import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  arrayOf,
  damage,
  damaged,
  elementBytes,
  type Given,
  type Layout,
  readArray,
  records,
} from '../support/array-damage.ts'

const WHOLE = 65536
const layout = fc.constantFrom<Layout>('compact', 'spaced', 'pretty')

const oneLine = (element: Buffer): string => element.toString().replaceAll('\n', ' ')

const isJson = (bytes: Uint8Array): boolean => {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes)) !== undefined
  } catch {
    return false
  }
}

test('an undamaged array gives every element byte for byte, whatever the size of reads', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.jsonValue()), layout, async (values, form) => {
      const elements = elementBytes(values, form)
      for (const size of [1, 3, WHOLE]) {
        const { rows, broken, problems } = await readArray(arrayOf(elements, form), size)
        const expected = elements.map((element, index) => ({
          text: oneLine(element),
          row: index + 1,
        }))
        assert.deepEqual([rows, broken, problems], [expected, [], []])
      }
    }),
    { numRuns: 60 },
  )
})

test('damage to one element costs none of the others, and is told', async () => {
  await fc.assert(
    fc.asyncProperty(records, layout, fc.nat(), damage, async (values, form, which, how) => {
      const elements = elementBytes(values, form)
      const index = which % elements.length
      const bad = damaged(elements[index]!, how)
      const bytes = arrayOf(elements.with(index, bad), form)
      fc.pre(!isJson(bytes))
      const { rows, broken, problems } = await readArray(bytes, WHOLE)
      const given = rows.map(({ text }) => text)
      const own = oneLine(bad)
      const others = elements.filter((_, place) => place !== index).map(oneLine)
      assert.deepEqual(
        given.filter((text) => !own.includes(text) || others.includes(text)),
        others,
      )
      assert.ok(broken.length + problems.length > 0)
    }),
    { numRuns: 600 },
  )
})

test('where strings and brackets are sound, nothing inside a broken element is given', async () => {
  const node: fc.Memo<unknown> = fc.memo((depth) =>
    fc.record({
      id: fc.nat(99),
      p: fc.string(),
      t: depth === 1 ? fc.constant([]) : fc.array(node(depth - 1), { maxLength: 2 }),
    }),
  )
  const fault = fc.constantFrom('"id":NaN', '"id":,', '"id":1,,', '"id":1 2', '"id":0x1F', 'id:1')
  await fc.assert(
    fc.asyncProperty(
      fc.array(node(3), { minLength: 2 }),
      fc.nat(),
      fault,
      async (values, n, how) => {
        const elements = values.map((value) => JSON.stringify(value))
        const index = n % elements.length
        const [first, ...rest] = elements[index]!.split(/(?<="id":\d+)(?=,)/)
        const bad = [first!.replace(/"id":\d+$/, how), ...rest].join('')
        const bytes = Buffer.from(`[${elements.with(index, bad).join(',')}]`)
        const { rows, broken } = await readArray(bytes, WHOLE)
        const others = elements.filter((_, place) => place !== index)
        assert.deepEqual(
          rows.map(({ text }) => text),
          others,
        )
        assert.deepEqual(
          broken.map(({ row }) => row),
          [index + 1],
        )
      },
    ),
    { numRuns: 300 },
  )
})

test('what damage costs does not depend on the size of reads', async () => {
  await fc.assert(
    fc.asyncProperty(
      records,
      layout,
      fc.array(fc.tuple(fc.nat(), damage)),
      async (values, form, how) => {
        const elements = elementBytes(values, form)
        for (const [which, one] of how) {
          const index = which % elements.length
          elements[index] = damaged(elements[index]!, one)
        }
        const bytes = arrayOf(elements, form)
        const expected = await readArray(bytes, WHOLE)
        for (const size of [1, 2, 3, 7, 4096]) {
          assert.deepEqual(await readArray(bytes, size), expected)
        }
      },
    ),
    { numRuns: 100 },
  )
})

/** What comes of an array, in words: rows by their id, broken ones and problems by row and code. */
function words({ rows, broken, problems }: Given): string {
  const id = (text: string): string => /"id":"?(\d+)/.exec(text)?.[1] ?? text
  return [
    ...rows.map(({ text, row }) => `${row}=${id(text)}`),
    ...broken.map(({ code, row }) => `${row}:${code}`),
    ...problems.map(({ code, row }) => `${row ?? ''}?${code}`),
  ].join(' ')
}

describe('one kind of damage each', () => {
  const cases: [string, string, string][] = [
    [
      'a word for a value beside an object like a row',
      '[{"id":1,"p":"a"},{"id":2,"p":NaN,"meta":[1,{"id":9,"p":"in"}]},{"id":3,"p":"c"}]',
      '1=1 3=3 2:nan',
    ],
    [
      'the same behind it',
      '[{"id":1,"p":"a"},{"id":2,"meta":{"id":9,"p":"in"},"p":None},{"id":3,"p":"c"}]',
      '1=1 3=3 2:python-repr',
    ],
    [
      'a comma too many in a row with a list of rows',
      '[{"id":1,"p":"a","t":[]},{"id":2,"p":"r","t":[{"id":9,"p":"in","t":[]}],},{"id":3,"p":"c","t":[]}]',
      '1=1 3=3 2:syntax',
    ],
    ['a lost quote', '[{"id":1,"p":"a"},{"id":2,"p":"b},{"id":3,"p":"c"}]', '1=1 3=3 2:truncated'],
    [
      'a lost quote in the first',
      '[{"id":1,"p":"a},{"id":2,"p":"b"},{"id":3,"p":"c"}]',
      '2=2 3=3 1:truncated',
    ],
    [
      'a lost quote in a key',
      '[{"id":1,"p":"a"},{"id:2,"p":"b"},{"id":3,"p":"c"}]',
      '1=1 3=3 2:syntax',
    ],
    ['a lost comma', '[{"id":1}{"id":2} {"id":3}]', '1=1 2=2 3=3 2?missing-comma 3?missing-comma'],
    ['another byte for a comma', '[{"id":1},{"id":2};{"id":3}]', '1=1 2=2 3=3 3?syntax'],
    ['a doubled comma', '[{"id":1},,{"id":2}]', '1=1 3=2 2:syntax'],
    ['a trailing comma', '[{"id":1},{"id":2},]', '1=1 2=2 ?trailing-comma'],
    [
      'a lost closing brace',
      '[{"id":1,"p":1},{"id":2,"p":2,{"id":3,"p":3},{"id":4,"p":4}]',
      '1=1 3=3 4=4 2:truncated',
    ],
    [
      'a lost opening brace',
      '[{"id":1,"p":1},"id":2,"p":2},{"id":3,"p":3}]',
      '1=1 3=3 2:multiple-values',
    ],
    [
      'a brace too many',
      '[{"id":1,"p":1},{"id":2,"p":2}},{"id":3,"p":3}]',
      '1=1 3=3 2:multiple-values',
    ],
    [
      'closed too early',
      '[{"id":1,"p":1},{"id":2},"p":2},{"id":3,"p":3}]',
      '1=1 3=3 2:multiple-values',
    ],
    ['a bracket too many', '[{"id":1,"p":1}],{"id":2,"p":2}]', '1=1 2=2 ?multiple-values'],
    [
      'a lost bracket',
      '[{"id":1,"t":[{"v":1}]},{"id":2,"t":[{"v":1},{"v":2}},{"id":3,"t":[]}]',
      '1=1 3=3 2:syntax',
    ],
    [
      'cut before a comma',
      '[{"id":1,"t":[{"v":1}]},{"id":2,"t":[{"v":1},{"id":3,"t":[]},{"id":4,"t":[]}]',
      '1=1 3=3 4=4 2:truncated',
    ],
    ['cut, and the comma lost', '[{"id":1,"p":1},{"id":2,"p{"id":3,"p":3}]', '1=1 3=3 2:truncated'],
    [
      'a line feed in a string',
      '[{"id":1,"p":"a"},{"id":2,"p":"b\nc"},{"id":3,"p":"c"}]',
      '1=1 3=3 2:control-char',
    ],
    ['NULs between', '[{"id":1},\0\0\0{"id":2}]', '1=1 2=2 2?nul'],
    ['NULs inside', '[{"id":1,"p":1},{"id":2,\0\0\0"p":2},{"id":3,"p":1}]', '1=1 3=3 2:nul'],
    ['cut at its end', '[{"id":1},{"id":2,"p":"b', '1=1 2:truncated'],
    ['cut behind an element', '[{"id":1},{"id":2}', '1=1 2=2 ?truncated'],
    ['text behind it', '[{"id":1}] and so on', '1=1 ?multiple-values'],
    [
      'two arrays',
      '[{"id":1}][{"id":2}]\n[{"id":3}]',
      '1=1 2=2 3=3 2?multiple-values 3?multiple-values',
    ],
    [
      'several in a row',
      '[{"id":1,"p":1},{"id":2,"p":x},{"id":3,"p":y},{"id":4,"p":4}]',
      '1=1 4=4 2:syntax 3:syntax',
    ],
  ]
  for (const [name, text, expected] of cases) {
    test(name, async () => {
      assert.equal(words(await readArray(Buffer.from(text), WHOLE)), expected)
    })
  }

  test('what is nested in a broken element is never an element', async () => {
    const tree = (id: number, kids: unknown[]): string => JSON.stringify({ id, p: 'x', kids })
    const leaves = (id: number): unknown[] =>
      [1, 2, 3].map((n) => ({ id: id + n, p: 'y', kids: [] }))
    const trees = [10, 20, 30, 40].map((id) => tree(id, leaves(id)))
    const broken = trees.with(1, trees[1]!.replace('"x"', '"x'))
    const given = await readArray(Buffer.from(`[${broken.join()}]`), WHOLE)
    assert.equal(words(given), '1=10 3=30 4=40 2:syntax')
  })
})

test('elements of megabytes, and damage in them', async () => {
  const long = (id: number): string =>
    JSON.stringify({ id, p: '},{"[ '.repeat(400_000), t: [{ v: id }] })
  const elements = [1, 2, 3, 4].map(long)
  const lost = elements.with(1, elements[1]!.replace('","t"', ',"t"'))
  assert.equal(
    words(await readArray(Buffer.from(`[${lost.join()}]`), WHOLE)),
    '1=1 3=3 4=4 2:syntax',
  )
})

describe('the work is linear in the bytes', () => {
  const shapes: [string, (count: number) => string][] = [
    ['open objects', (count) => '{"a":[0,'.repeat(count)],
    ['nested objects', (count) => `${'{"a":'.repeat(count)}1${'}'.repeat(count)} x`],
    ['every other element broken', (count) => '{"a":1},{"a":"b},'.repeat(count)],
    ['lists without an end', (count) => '{"a":1},{"a":[{"b":1},'.repeat(count)],
    ['elements that swallow', (count) => '{"a":1},{"a":[1,:,'.repeat(count)],
    ['commas that are lost', (count) => '{"a":1}'.repeat(count)],
  ]
  for (const [name, make] of shapes) {
    test(name, async () => {
      const cost = async (count: number): Promise<number> => {
        const bytes = Buffer.from(`[{"a":1},${make(count)}{"a":2}]`)
        const before = process.cpuUsage()
        await readArray(bytes, WHOLE)
        const { user, system } = process.cpuUsage(before)
        return user + system
      }
      await cost(5000)
      const small = await cost(20_000)
      const large = await cost(160_000)
      assert.ok(large < 24 * small, `${small} and ${large} microseconds`)
    })
  }
})
