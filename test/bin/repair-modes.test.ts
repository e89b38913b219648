import assert from 'node:assert/strict'
import { closeSync, existsSync, openSync, readdirSync, statSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import {
  BAD,
  fileOf,
  pieceTexts,
  read,
  repair,
  repairText,
  TORN,
  WHOLE,
} from '../support/damaged.ts'
import { newFolder } from '../support/run.ts'

describe('--check', () => {
  const verdicts: [string, number][] = [
    [WHOLE, 0],
    ['', 0],
    [WHOLE + TORN, 1],
    [WHOLE.slice(0, -1), 1],
    [`${WHOLE}\n`, 1],
    [`\ufeff${WHOLE}`, 1],
    [`${WHOLE}\0`, 1],
    ['{"a":1}{"a":2}\n', 1],
    [WHOLE + BAD, 1],
  ]
  for (const [content, code] of verdicts) {
    test(`${JSON.stringify(content.slice(-12))} is ${code}`, async () => {
      const file = fileOf(content)
      for (const args of [['--check'], ['--check', '-i']]) {
        const result = await repair(...args, file)
        assert.equal(result.code, code, result.stderr)
        assert.equal(result.stdout.length, 0)
        assert.equal(read(file), content)
        assert.deepEqual(readdirSync(join(file, '..')), ['f.jsonl'])
      }
    })
  }
})

describe('--tail', () => {
  const tails: [string, string, string, string[]][] = [
    ['nothing to do', WHOLE, WHOLE, []],
    ['an empty file', '', '', []],
    ['a missing newline', WHOLE.slice(0, -1), WHOLE, []],
    ['half a record', WHOLE + TORN, WHOLE, [TORN]],
    ['half a record before NULs', `${WHOLE}${TORN}\0\0\0`, WHOLE, [TORN]],
    ['half a record behind NULs', `${WHOLE}\0\0${TORN}`, WHOLE, [TORN]],
    ['NULs', `${WHOLE}\0\0\0`, WHOLE, []],
    ['NULs behind a record', `${WHOLE.slice(0, -1)}\0\0`, WHOLE, []],
    ['only NULs', '\0\0', '', []],
    ['only half a record', TORN, '', [TORN]],
    ['white space', `${WHOLE}  `, WHOLE, []],
    ['a bare number', `${WHOLE}12`, WHOLE, ['12']],
    [
      'a whole object before the tear',
      `${WHOLE}{"id":3,"t":"c"}{"id`,
      `${WHOLE}{"id":3,"t":"c"}\n`,
      ['{"id'],
    ],
    ['damage further up is not looked at', `${BAD}${WHOLE}${TORN}`, BAD + WHOLE, [TORN]],
  ]
  for (const [name, content, expected, removed] of tails) {
    test(name, async () => {
      const file = fileOf(content)
      const { ino } = statSync(file)
      const check = await repair('--tail', '--check', file)
      assert.equal(check.code, content === expected ? 0 : 1)
      assert.equal(read(file), content)
      const result = await repair('--tail', '-i', file)
      assert.equal(result.code, 0, result.stderr)
      assert.equal(read(file), expected)
      assert.equal(statSync(file).ino, ino, 'in place')
      assert.deepEqual(pieceTexts(`${file}.removed.jsonl`), removed)
      assert.equal((await repair('--tail', '--check', file)).code, 0)
    })
  }

  for (const tail of [
    '{"id":3,"t":"x{"id":4,"t":"d"}',
    '{"id":3}{"id":4}',
    '{"id":3}{"id":4}{"i',
  ]) {
    test(`a split is left to the whole repair: ${tail}`, async () => {
      const file = fileOf(WHOLE + tail)
      const result = await repair('--tail', '-i', file)
      assert.equal(result.code, 1)
      assert.match(result.stderr, /repair-truncated -i without --tail/)
      assert.equal(read(file), WHOLE + tail)
    })
  }

  for (const line of ['{"b":2,', '{"id":3}{"id":4}', 'nothing of the kind']) {
    test(`a bad last line with its newline is told and left to the whole repair: ${line}`, async () => {
      for (const behind of ['', '\0\0']) {
        const file = fileOf(`${WHOLE}${line}\n${behind}`)
        for (const mode of ['--check', '-i']) {
          const result = await repair('--tail', mode, file)
          assert.equal(result.code, 1)
          assert.match(result.stderr, /repair-truncated -i without --tail/)
          assert.doesNotMatch(result.stderr, /nothing to repair/)
        }
        assert.equal(read(file), `${WHOLE}${line}\n`)
      }
    })
  }

  for (const [name, content] of [
    ['a byte order mark', '\ufeff{"id":1}\n'],
    ['blank lines', `${WHOLE}\n \n`],
    ['carriage returns', '{"id":1}\r\n'],
  ] as const) {
    test(`${name} at its end: no torn tail`, async () => {
      const result = await repair('--tail', '--check', fileOf(content))
      assert.equal(result.code, 0, result.stderr)
    })
  }

  for (const [code, content] of [
    ['pretty-printed', '{\n "id": 1\n}'],
    ['json-array', '[\n{"id":1}\n,\n2]'],
    ['no-record', '<html>\n<body>\n</html>'],
  ] as const) {
    test(`${code} is refused`, async () => {
      const file = fileOf(content)
      const result = await repair('--tail', '-i', file)
      assert.equal(result.code, 1)
      assert.match(result.stderr, new RegExp(`\\[${code}\\]`))
      assert.equal(read(file), content)
    })
  }

  for (const [where, before, kept] of [
    ['behind whole lines', `\n${WHOLE}`, `\n${WHOLE}`],
    ['behind a line that begins with the hole', WHOLE, WHOLE],
    ['directly behind the hole', '', '\n'],
  ] as const) {
    test(`a file of 5 GB takes no longer: ${where}`, async () => {
      const file = fileOf('')
      const fd = openSync(file, 'r+')
      const size = 5 * 1024 ** 3
      writeSync(fd, `${before}${TORN}`, size)
      closeSync(fd)
      const result = await repair('--tail', '-i', file)
      assert.equal(result.code, 0, result.stderr)
      assert.equal(statSync(file).size, size + kept.length)
      const [piece] = read(`${file}.removed.jsonl`).split('\n')
      assert.equal(JSON.parse(piece!).offset, size + before.length)
    })
  }

  test('needs -i or --check, and names', async () => {
    const file = fileOf(WHOLE)
    for (const args of [
      ['--tail', file],
      ['--tail', '-i'],
      ['--tail', '--check', '-'],
    ]) {
      assert.equal((await repair(...args)).code, 2)
    }
  })
})

describe('--salvage', () => {
  const salvaged: [string, string | undefined][] = [
    ['{"id":3,"t":"c', '{"id":3,"truncated":true}'],
    ['{"id":3,"n":12', '{"id":3,"truncated":true}'],
    ['{"id":3,"n":true', '{"id":3,"n":true,"truncated":true}'],
    ['{"id":3,"n":tru', '{"id":3,"truncated":true}'],
    [
      '{"id":3,"m":{"x":1.50,"y":[1, {"z":"}"},2',
      '{"id":3,"m":{"x":1.50,"y":[1, {"z":"}"}]},"truncated":true}',
    ],
    ['{"id":3,"m":[', '{"id":3,"m":[],"truncated":true}'],
    ['{"id":3,"m":{"a', '{"id":3,"m":{},"truncated":true}'],
    ['{"id":3,"m"', '{"id":3,"truncated":true}'],
    ['{"id":3,', '{"id":3,"truncated":true}'],
    ['{"id', '{"truncated":true}'],
    ['{"id":3,"t":"\xc3', '{"id":3,"truncated":true}'],
    ['[1,2', undefined],
    ['<html', undefined],
  ]
  for (const [torn, expected] of salvaged) {
    test(torn, async () => {
      const file = fileOf(Buffer.from(WHOLE + torn, 'latin1'))
      const out = `${file}.salvaged`
      const result = await repair('--salvage', '--salvaged', out, file)
      assert.equal(result.stdout.toString(), WHOLE)
      assert.equal(existsSync(out) ? read(out) : undefined, expected && `${expected}\n`)
      const tail = await repair('--tail', '-i', '--salvage', '--salvaged', `${out}2`, file)
      assert.equal(tail.code, 0)
      assert.equal(existsSync(`${out}2`) ? read(`${out}2`) : undefined, expected && `${expected}\n`)
    })
  }

  test('needs its file', async () => {
    for (const half of [['--salvage'], ['--salvaged', join(newFolder(), 's')]]) {
      const { code, stderr } = await repairText(WHOLE, ...half)
      assert.equal(code, 2)
      assert.match(stderr, /--salvaged FILE gets|--salvage needs --salvaged FILE, which gets/)
    }
  })
})
