import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { JsonBytes } from '../../src/core/json-bytes.ts'
import { JsonScanner, PADDING } from '../../src/core/json-scan.ts'
import { MemberFinder } from '../../src/core/member-finder.ts'
import { skipValue } from '../../src/core/skip-value.ts'

const text = fc.string({ unit: 'binary' }).filter((value) => value.isWellFormed())

test('text is written from its bytes as JSON.stringify writes it', () => {
  fc.assert(
    fc.property(text, fc.bigInt(), fc.double(), (string, big, number) => {
      const json = new JsonBytes(4)
      json.object([
        ['text', new Uint8Array(Buffer.from(string))],
        ['big', big],
        ['list', [number, null, true]],
        ['none', null],
      ])
      const expected = `{"text":${JSON.stringify(string)},"big":${big},"list":[${JSON.stringify(number)},null,true]}`
      assert.equal(json.view().toString(), expected)
    }),
  )
})

test('what is passed over unread ends where the scanner says', () => {
  const values = fc.oneof(
    fc.jsonValue(),
    text,
    fc.string({ unit: fc.constantFrom('\\', '"', 'a') }),
  )
  fc.assert(
    fc.property(values, fc.nat(60), (value, blanks) => {
      const json = `${' '.repeat(blanks)}${JSON.stringify(value, null, blanks % 3 ? '' : ' ').replaceAll('\n', ' ')}`
      const bytes = Buffer.from(`${json},${'\n'.repeat(PADDING)}`)
      const scanner = new JsonScanner()
      scanner.use(bytes)
      assert.equal(skipValue(bytes, blanks), scanner.value(blanks))
    }),
  )
})

test('members are found alike from the scanner and without it, the last of two counts', () => {
  const key = fc.constantFrom('"a"', '"\\u0061"', '"role"', '"x"', '""', '"ro\\u006ce"')
  const member = fc.tuple(key, fc.jsonValue({ maxDepth: 1 }))
  fc.assert(
    fc.property(fc.array(member), (members) => {
      const inside = members.map(([name, value]) => `${name} : ${JSON.stringify(value)}`)
      const bytes = Buffer.from(`{ ${inside.join(' , ')} }${'\n'.repeat(PADDING)}`)
      const scanner = new JsonScanner()
      scanner.use(bytes)
      const end = scanner.value(0)
      const [scanned, read] = [
        new MemberFinder(['a', 'role', 'none']),
        new MemberFinder(['a', 'role', 'none']),
      ]
      scanned.look(scanner, bytes)
      assert.equal(read.read(bytes, 0), end)
      for (const place of [0, 1, 2]) assert.deepEqual(read.value(place), scanned.value(place))
      assert.deepEqual([read.count, read.others], [scanned.count, scanned.others])
      const last = members.findLast(([name]) => JSON.parse(name) === 'role')
      const range = read.value(1)
      assert.equal(
        range && bytes.toString('utf8', range.start, range.end),
        last && JSON.stringify(last[1]),
      )
    }),
  )
})
