import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { removedHex } from '../support/cases.ts'
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
import { newFolder, run } from '../support/run.ts'
import { handMade } from '../support/zstd.ts'

describe('framing', () => {
  const same: [string, string, string][] = [
    [
      'a byte order mark before any line',
      '\ufeff{"a":1}\n\ufeff{"a":2}\r\n',
      '{"a":1}\n{"a":2}\r\n',
    ],
    ['a byte order mark between records', '{"a":1}\ufeff{"a":2}\n', '{"a":1}\n{"a":2}\n'],
    ['NULs before and after a record', '\0\0{"a":1}\0\0\n\0\n', '{"a":1}\n'],
    ['NULs and white space in a row', ' \0 \t{"a":1} \0\r\n', '{"a":1}\n'],
    ['NULs at the end, behind a record', '{"a":1}\0\0\0', '{"a":1}\n'],
    ['blank lines of all kinds', '\n{"a":1}\n \t\r\n\r\n', '{"a":1}\n'],
    ['only white space without a newline', '{"a":1}\n  ', '{"a":1}\n'],
    ['a missing newline', '{"a":1}', '{"a":1}\n'],
    ['a scalar without newline', '"abc"', '"abc"\n'],
    ['NULs before another value', '\0\0"abc"\0\n', '"abc"\n'],
    ['white space inside a clean line stays', '  {"a": 1}  \n', '  {"a": 1}  \n'],
    ['objects on one line', '{"a":1}{"b":2} {"c":3}\r\n', '{"a":1}\n{"b":2}\n{"c":3}\r\n'],
    ['objects on the last line', '{"a":1}{"b":2}', '{"a":1}\n{"b":2}\n'],
    ['objects with NULs between', '{"a":1}\0\0{"b":2}\0', '{"a":1}\n{"b":2}\n'],
    ['nothing', '', ''],
    ['only NULs', '\0\0\0', ''],
  ]
  for (const [name, input, expected] of same) {
    test(name, async () => {
      const result = await repairText(input)
      assert.equal(result.text, expected)
      assert.equal(result.code, 0, result.stderr)
    })
  }
})

describe('torn tails', () => {
  const tails: [string, string, string][] = [
    ['half a record', TORN, TORN],
    ['half a character', '{"id":3,"t":"caf\xc3', '{"id":3,"t":"caf\xc3'],
    ['half a record before NULs', `${TORN} \0\0 \0`, `${TORN} `],
    ['half a record behind NULs', `\0\0 ${TORN}`, TORN],
    ['a bare number', '12', '12'],
    ['a bare number before NULs', '12\0\0', '12'],
    ['a nested object that is whole', '{"id":3,"m":{"x":1}', '{"id":3,"m":{"x":1}'],
    ['an array', '[1,2', '[1,2'],
    ['no JSON at all', '<htm', '<htm'],
  ]
  for (const [name, tail, removed] of tails) {
    test(name, async () => {
      const file = fileOf(Buffer.from(WHOLE + tail, 'latin1'))
      const result = await repair('-i', file)
      assert.equal(read(file), WHOLE)
      assert.equal(result.code, 0, result.stderr)
      const expected = Buffer.from(removed, 'latin1').toString('hex')
      assert.deepEqual(removedHex(`${file}.removed.jsonl`), [expected])
    })
  }

  test('whole objects before the tear are kept', async () => {
    const result = await repairText(`${WHOLE}{"id":3,"t":"c"}{"id":4,"t":"d"} {"id":5,"t`)
    assert.equal(result.text, `${WHOLE}{"id":3,"t":"c"}\n{"id":4,"t":"d"}\n`)
    assert.equal(result.code, 0)
  })

  test('an object before a comma is part of something and not kept', async () => {
    const result = await repairText(`${WHOLE}{"x":1},"t":"c`)
    assert.equal(result.text, WHOLE)
  })

  test('only half a first record: an empty file, exit 0', async () => {
    const file = fileOf(`\ufeff\n\0\n${TORN}`)
    const result = await repair('-i', file)
    assert.deepEqual([read(file), result.code], ['', 0])
  })
})

describe('glue', () => {
  const split: [string, string, string, string][] = [
    [
      'in a string',
      `${WHOLE}{"id":3,"t":"x{"id":4,"t":"d"}\n`,
      `${WHOLE}{"id":4,"t":"d"}\n`,
      '{"id":3,"t":"x',
    ],
    ['in a key', `${WHOLE}{"id":3,"{"id":4,"t":"d"}\n`, `${WHOLE}{"id":4,"t":"d"}\n`, '{"id":3,"'],
    [
      'behind NULs',
      `${WHOLE}{"id":3\0\0{"id":4,"t":"d"}\r\n`,
      `${WHOLE}{"id":4,"t":"d"}\r\n`,
      '{"id":3',
    ],
    [
      'in half a character',
      `${WHOLE}{"id":3,"t":"\xc3{"id":4,"t":"d"}\n`,
      `${WHOLE}{"id":4,"t":"d"}\n`,
      '{"id":3,"t":"\xc3',
    ],
    [
      'several whole ones',
      `${WHOLE}{"id":3,"t{"id":4,"t":"d"}{"id":5,"t":"e"}\n`,
      `${WHOLE}{"id":4,"t":"d"}\n{"id":5,"t":"e"}\n`,
      '{"id":3,"t',
    ],
    [
      'a whole one before it',
      `${WHOLE}{"id":9,"t":"z"}{"id":3,"t{"id":4,"t":"d"}\n`,
      `${WHOLE}{"id":9,"t":"z"}\n{"id":4,"t":"d"}\n`,
      '{"id":3,"t',
    ],
    [
      'keys in another order',
      `${WHOLE}{"id":3,"t":"x{"t":"d","id":4}\n`,
      `${WHOLE}{"t":"d","id":4}\n`,
      '{"id":3,"t":"x',
    ],
    [
      'after a colon, where no record has an object',
      `${WHOLE}{"id":3,"t":{"id":4,"t":"d"}\n`,
      `${WHOLE}{"id":4,"t":"d"}\n`,
      '{"id":3,"t":',
    ],
    [
      'without newline',
      `${WHOLE}{"id":3,"t":"x{"id":4,"t":"d"}`,
      `${WHOLE}{"id":4,"t":"d"}\n`,
      '{"id":3,"t":"x',
    ],
    [
      'before the first record',
      `{"id":3,"t":"x{"id":4,"t":"d"}\n${WHOLE}`,
      `{"id":4,"t":"d"}\n${WHOLE}`,
      '{"id":3,"t":"x',
    ],
    [
      'before a first line of two records',
      '{"a":3,"b":"x{"a":4,"b":5}\n{"a":1,"b":2}{"a":1,"b":3}\n',
      '{"a":4,"b":5}\n{"a":1,"b":2}\n{"a":1,"b":3}\n',
      '{"a":3,"b":"x',
    ],
    [
      'escaped keys are the same keys',
      `${WHOLE}{"id":3,"\\u0074":"x{"\\u0069d":4,"t":"d"}\n`,
      `${WHOLE}{"\\u0069d":4,"t":"d"}\n`,
      '{"id":3,"\\u0074":"x',
    ],
  ]
  for (const [name, input, expected, removed] of split) {
    test(name, async () => {
      const file = fileOf(Buffer.from(input, 'latin1'))
      const result = await repair('-i', file)
      assert.equal(readFileSync(file, 'latin1'), expected)
      assert.equal(result.code, 1)
      const hex = Buffer.from(removed, 'latin1').toString('hex')
      assert.deepEqual(removedHex(`${file}.removed.jsonl`), [hex])
    })
  }

  const between: [string, string, string[]][] = [
    ['half a record', '{"id":5,"t":"y', ['{"id":3,"t":"x', '{"id":5,"t":"y']],
    ['half a key', '{"i', ['{"id":3,"t":"x', '{"i']],
    ['a brace in a string', '{"id":5,"t":"}{', ['{"id":3,"t":"x', '{"id":5,"t":"}{']],
    ['NULs and half a record', '\0\0{"id":5\0', ['{"id":3,"t":"x', '{"id":5']],
  ]
  for (const [name, tail, removed] of between) {
    test(`between a torn one and ${name}`, async () => {
      const file = fileOf(`${WHOLE}{"id":3,"t":"x{"id":4,"t":"d"}${tail}`)
      const inTail = await repair('--tail', '-i', file)
      assert.equal(inTail.code, 1)
      const result = await repair('-i', file)
      assert.equal(read(file), `${WHOLE}{"id":4,"t":"d"}\n`)
      assert.equal(result.code, 1)
      assert.deepEqual(pieceTexts(`${file}.removed.jsonl`), removed)
    })
  }

  const whole: [string, string][] = [
    ['no whole key', '{"i{"id":4,"t":"d"}\n'],
    ['other keys', '{"id":3,"t":"x{"id":4,"u":"d"}\n'],
    ['fewer keys', '{"id":3,"t":"x{"id":4}\n'],
    ['a torn part with other keys', '{"id":3,"u":"x{"id":4,"t":"d"}\n'],
    ['a torn part with keys in another order', '{"t":"x{"id":4,"t":"d"}\n'],
    ['a cut key that begins no next one', '{"id":3,"u{"id":4,"t":"d"}\n'],
    ['a whole record before a torn one', '{"id":3,"t":"x"}{"id":4,"t"\n'],
    ['rest of a record behind a whole one', '{"id":3,"t":"x"}AAA"}\n'],
    ['NULs inside a record', '{"id":3,"t":"x\0\0y"}\n'],
  ]
  for (const [name, line] of whole) {
    test(`no evidence: ${name}`, async () => {
      const file = fileOf(`${WHOLE}${line}${WHOLE}`)
      const result = await repair('-i', file)
      assert.equal(read(file), WHOLE + WHOLE)
      assert.equal(result.code, 1)
      assert.deepEqual(pieceTexts(`${file}.removed.jsonl`), [line])
    })
  }

  test('a nested object of the same shape is never a record', async () => {
    const tree = '{"id":1,"child":{"id":2,"child":null}}\n'
    const torn = '{"id":5,"child":{"id":6,"child":null}\n'
    const result = await repairText(`${tree}${torn}${tree}`)
    assert.equal(result.text, tree + tree)
    const inArray = '{"id":1,"children":[{"id":2,"children":[]}]}\n'
    const tornArray = '{"id":5,"children":[{"id":6,"children":[]}\n'
    const other = await repairText(`${inArray}${tornArray}${inArray}`)
    assert.equal(other.text, inArray + inArray)
  })

  const unattested: [string, string, string][] = [
    ['empty arrays', '{"id":1,"c":[]}\n', '{"id":3,"c":[{"id":4,"c":[]}\n'],
    ['empty arrays, a second element', '{"id":1,"c":[]}\n', '{"id":3,"c":[{},{"id":4,"c":[]}\n'],
    ['null above it', '{"id":1,"p":null}\n', '{"id":3,"p":[{"id":4,"p":null}\n'],
    ['text above it', '{"id":1,"p":"s"}\n', '{"id":3,"p":{"b":{"id":4,"p":"s"}\n'],
    ['another key', '{"id":1,"p":{"a":1}}\n', '{"id":3,"p":{"b":{"id":4,"p":{}}\n'],
  ]
  for (const [name, near, torn] of unattested) {
    test(`a place where no record has a value is no evidence: ${name}`, async () => {
      const result = await repairText(near + torn + near)
      assert.equal(result.text, near + near)
      assert.equal(result.code, 1)
    })
  }

  test('in an array, where a record has numbers', async () => {
    const near = '{"id":1,"c":[]}\n{"id":2,"c":[7]}\n'
    const result = await repairText(`${near}{"id":3,"c":[{"id":4,"c":[]}\n`)
    assert.equal(result.text, `${near}{"id":4,"c":[]}\n`)
  })

  test('only the last eight records are near', async () => {
    const other = (n: number): string => '{"x":1}\n'.repeat(n)
    const glued = '{"id":3,"t":"x{"id":4,"t":"d"}\n'
    const near = await repairText(`${WHOLE}${other(7)}${glued}`)
    assert.match(near.text, /"id":4/)
    const far = await repairText(`${WHOLE}${other(8)}${glued}`)
    assert.doesNotMatch(far.text, /"id":4/)
  })

  test('waiting for the first record ends at 16 MiB', async () => {
    const glued = '{"id":3,"t":"x{"id":4,"t":"d"}\n'
    const bad = `${'x'.repeat(1024 * 1024)}\n`
    const waits = await repairText(glued + bad.repeat(15) + WHOLE)
    assert.match(waits.text, /"id":4/)
    const gaveUp = await repairText(glued + bad.repeat(16) + WHOLE)
    assert.equal(gaveUp.text, WHOLE)
  })
})

describe('refusals', () => {
  const LFS = 'version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 2\n'
  const refused: [string, string | Uint8Array][] = [
    ['utf16', Buffer.from(WHOLE, 'utf16le')],
    ['pretty-printed', '{\n "id": 1\n}\n'],
    ['json-array', '[\n{"id":1},\n{"id":2}\n]\n'],
    ['lfs-pointer', LFS],
    ['conflict-marker', `${WHOLE}<<<<<<< HEAD\n${WHOLE}=======\n>>>>>>> x\n`],
    ['no-record', '{"a":1,}\n{"a":2,}\n{"a":3'],
  ]
  for (const [code, content] of refused) {
    test(code, async () => {
      const file = fileOf(content)
      const before = statSync(file)
      for (const args of [[file], ['-i', file], ['--check', file]]) {
        const removed = `${file}.other`
        const result = await repair('--removed', removed, ...args)
        assert.equal(result.code, 1)
        assert.equal(result.stdout.length, 0)
        assert.match(result.stderr, new RegExp(`f.jsonl: .*\\[${code}\\]\n$`))
        assert.equal(result.stderr.split('\n').length, 2, 'one message')
        assert.deepEqual(readdirSync(join(file, '..')), ['f.jsonl'])
      }
      const after = statSync(file)
      assert.deepEqual([after.ino, after.mtimeMs], [before.ino, before.mtimeMs])
    })
  }

  test('the other files go on', async () => {
    const result = await repair(fileOf('[\n1\n]\n'), fileOf(WHOLE + TORN))
    assert.deepEqual([result.stdout.toString(), result.code], [WHOLE, 1])
  })

  test('a conflict marker behind the first MiB of a filter is a removed line', async () => {
    const filler = `{"id":0,"t":"${'x'.repeat(1000)}"}\n`.repeat(1100)
    const marker = '<<<<<<< HEAD\n'
    for (const size of ['1000', '4096', '65536', '2M']) {
      const file = fileOf(filler + marker + WHOLE)
      const removed = `${file}.out`
      const late = await repair('--read-size', size, '--removed', removed, file)
      assert.equal(late.stdout.toString(), filler + WHOLE)
      assert.equal(late.code, 1)
      assert.deepEqual(pieceTexts(removed), [marker])
      const early = await repair('--read-size', size, fileOf(WHOLE + marker + filler))
      assert.deepEqual([early.stdout.length, early.code], [0, 1])
      const inPlace = await repair('-i', file)
      assert.equal(inPlace.code, 1)
      assert.equal(read(file), filler + marker + WHOLE)
    }
  })

  test('pieces of a refused file are taken back', async () => {
    const file = fileOf(`${'x'.repeat(9_000_000)}\n`.repeat(3))
    const removed = `${file}.out`
    writeFileSync(removed, '{"earlier":1}\n')
    const result = await repair('--removed', removed, file)
    assert.equal(result.code, 1)
    assert.equal(read(removed), '{"earlier":1}\n')
  })
})

describe('as a filter', () => {
  test('--stats balance', async () => {
    const input = `\ufeff${WHOLE}\n${BAD}{"id":1}{"id":2}\n${TORN}`
    const file = join(newFolder(), 'stats')
    await repairText(input, '--stats', file)
    const counts = JSON.parse(read(file))
    assert.deepEqual(counts, {
      files: 1,
      refused: 0,
      lines: 6,
      kept: 1,
      unframed: 1,
      split: 1,
      framing: 1,
      torn: 1,
      removed: 1,
      records: 4,
      pieces: 2,
      removed_bytes: BAD.length + TORN.length,
      framing_bytes: 4,
      added_newlines: 1,
      final_newlines: 0,
    })
  })

  for (const [how, end, code] of [
    ['a signal', (child) => child.kill('SIGTERM'), 143],
    ['a closed pipe', (child) => child.stdout?.destroy(), 0],
  ] as [string, (child: ChildProcess) => void, number][]) {
    test(`--stats balance and tell what was done before ${how}`, async () => {
      const file = join(newFolder(), 'stats')
      const result = await run('repair-truncated', ['--stats', file], {
        input: endless(`${WHOLE}${BAD}\n`),
        onStart: (child) => child.stdout?.once('data', () => end(child)),
      })
      assert.equal(result.code, code, result.stderr.slice(-1000))
      const counts = JSON.parse(read(file))
      const { files, lines, kept, removed, framing, records } = counts
      assert.deepEqual([files, lines, records], [1, kept + removed + framing, kept])
      assert.ok(kept > 0 && removed > 0 && framing > 0)
      if (code > 0) assert.equal(result.stdout.toString().split('\n').length - 1, kept)
    })
  }

  test('-q says only what exit 1 means', async () => {
    const quiet = await repairText(`${WHOLE}\n${TORN}`, '-q')
    assert.deepEqual([quiet.stderr, quiet.code], ['', 0])
    const bad = await repairText(WHOLE + BAD, '-q')
    assert.match(bad.stderr, /^repair-truncated: <stdin>:3:\d+: .*\[syntax\]\n$/)
  })

  test('truncated gzip: whole lines, exit 1', async () => {
    const packed = gzipSync(WHOLE.repeat(100))
    const result = await repair(fileOf(packed.subarray(0, packed.length - 9)))
    assert.equal(result.code, 1)
    assert.match(result.stderr, /\[gzip-truncated\]/)
    assert.ok(WHOLE.repeat(100).startsWith(result.stdout.toString()))
  })

  test('gzip with other bytes behind it: every line, exit 1, from a file and a pipe', async () => {
    const lines = WHOLE.repeat(2000)
    const packed = Buffer.concat([gzipSync(lines), Buffer.from('<html>502 Bad Gateway</html>\n')])
    for (const result of [
      await repair(fileOf(packed)),
      await run('repair-truncated', [], { input: packed }),
    ]) {
      assert.equal(result.code, 1)
      assert.match(result.stderr, /no gzip follow the end of the gzip stream .*\[gzip-truncated\]/)
      assert.equal(result.stdout.toString(), lines)
    }
  })

  test('a gzip writer killed and restarted: both of its members, exit 1', async () => {
    const [first, second] = ['a', 'b'].map((name) =>
      Array.from({ length: 3000 }, (_, id) => `{"id":"${name}${id}","x":${id * 7919}}\n`).join(''),
    )
    const cut = gzipSync(first!).subarray(0, 9000)
    const result = await repair(fileOf(Buffer.concat([cut, gzipSync(second!)])))
    assert.equal(result.code, 1)
    assert.match(result.stderr, /1 piece \(\d+ bytes\) removed, 1 line split/)
    const records = result.stdout.toString()
    assert.ok(records.endsWith(second!))
    const before = records.slice(0, -second!.length)
    assert.ok(before.length > 20_000 && first!.startsWith(before))
  })

  test('a zstd writer killed and restarted: every whole block, exit 1, from a file and a pipe', async () => {
    const [first, second] = ['a', 'b'].map((name) => {
      const block = (part: number): Buffer =>
        Buffer.from(
          Array.from({ length: 900 }, (_, id) => `{"id":"${name}${part}-${id}"}\n`).join(''),
        )
      return handMade([block(0), block(1), block(2)], { hasChecksum: true })
    })
    const { packed, text, ends } = first!
    const cut = packed.subarray(0, ends[1]!.packed + 1000)
    const input = Buffer.concat([cut, second!.packed, Buffer.from('Killed\n')])
    for (const result of [
      await repair(fileOf(input)),
      await run('repair-truncated', [], { input }),
    ]) {
      assert.equal(result.code, 1)
      assert.match(result.stderr, /the zstd stream ends early \[zstd-truncated\]/)
      const expected = Buffer.concat([text.subarray(0, ends[1]!.text), second!.text])
      assert.equal(result.stdout.compare(expected), 0)
    }
  })

  test('a flipped bit in zstd: every line, exit 1', async () => {
    const { packed, text } = handMade([Buffer.from(WHOLE)], { hasChecksum: true })
    packed[9 + 13]! ^= 1
    const result = await repair(fileOf(packed))
    assert.equal(result.code, 1)
    assert.match(result.stderr, /the zstd stream is damaged \[zstd-truncated\]/)
    assert.equal(result.stdout.length, text.length)
  })

  test('a closed pipe ends it quietly', async () => {
    const file = fileOf(WHOLE.repeat(300_000))
    const result = await run('repair-truncated', [file], {
      onStart: (child) => child.stdout?.once('data', () => child.stdout?.destroy()),
    })
    assert.deepEqual([result.code, result.stderr], [0, ''])
  })

  test('/dev/full is exit 2', { skip: !existsSync('/dev/full') }, async () => {
    const full = openSync('/dev/full', 'w')
    const result = await run('repair-truncated', [fileOf(WHOLE)], { stdout: full })
    closeSync(full)
    assert.equal(result.code, 2)
    assert.match(result.stderr, /no space left/)
  })

  test('the output is an input: exit 2 before it is harmed', async () => {
    const file = fileOf(WHOLE + TORN)
    const stdout = openSync(file, 'a')
    const result = await run('repair-truncated', [file], { stdout })
    closeSync(stdout)
    assert.equal(result.code, 2)
    assert.equal(read(file), WHOLE + TORN)
  })

  test('an unreadable file is exit 2, the others go on', async () => {
    const result = await repair('/nowhere/f', fileOf(WHOLE))
    assert.deepEqual([result.code, result.stdout.toString()], [2, WHOLE])
  })

  test('a directory is exit 2', async () => {
    const folder = join(newFolder(), 'd')
    mkdirSync(folder)
    assert.equal((await repair(folder)).code, 2)
  })

  test('--help, --version', async () => {
    const help = await repair('--help')
    assert.match(help.stderr, /Examples:/)
    const version = await repair('--version')
    assert.match(version.stderr, /^repair-truncated \(completion-pipes\) \d/)
    assert.equal((await repair('--nonsense')).code, 2)
  })
})

/** Lines without end. */
async function* endless(lines: string): AsyncGenerator<Uint8Array, void, void> {
  const block = Buffer.from(lines.repeat(1000))
  for (;;) {
    yield block
    await new Promise((resolve) => setImmediate(resolve))
  }
}
