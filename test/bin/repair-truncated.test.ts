import assert from 'node:assert/strict'
import {
  appendFileSync,
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { command } from '../../bin/repair-truncated.ts'
import { removedHex } from '../support/cases.ts'
import { newFolder, run, runInProcess } from '../support/run.ts'

const WHOLE = '{"id":1,"t":"a"}\n{"id":2,"t":"b"}\n'
const TORN = '{"id":3,"t":"c'
const BAD = '{"id":3,}\n'

/** A file in a new folder. */
function fileOf(content: string | Uint8Array): string {
  const path = join(newFolder(), 'f.jsonl')
  writeFileSync(path, content)
  return path
}

function read(path: string): string {
  return readFileSync(path, 'utf8')
}

function repair(...args: string[]) {
  return runInProcess(command, args)
}

/** Repairs text given on standard input. */
async function repairText(text: string, ...args: string[]) {
  const result = await runInProcess(command, args, { input: text })
  return { ...result, text: result.stdout.toString() }
}

function pieceTexts(path: string): string[] {
  return removedHex(path).map((hex) => Buffer.from(hex, 'hex').toString())
}

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

describe('in place', () => {
  test('keeps mode, and the file that a symbolic link leads to', async () => {
    const file = fileOf(WHOLE + TORN)
    chmodSync(file, 0o640)
    const link = join(file, '../link.jsonl')
    symlinkSync('f.jsonl', link)
    const result = await repair('-i', link)
    assert.equal(result.code, 0)
    assert.equal(result.stdout.length, 0)
    assert.equal(read(file), WHOLE)
    assert.equal(statSync(file).mode & 0o7777, 0o640)
    const names = ['f.jsonl', 'f.jsonl.removed.jsonl', 'link.jsonl']
    assert.deepEqual(readdirSync(join(file, '..')).sort(), names)
  })

  for (const args of [['-i.bak'], ['--in-place=.bak']]) {
    test(`${args[0]} keeps the old file, over an older one`, async () => {
      const file = fileOf(WHOLE + TORN)
      writeFileSync(`${file}.bak`, 'older')
      const { ino } = statSync(file)
      await repair(...args, file)
      assert.deepEqual([read(file), read(`${file}.bak`)], [WHOLE, WHOLE + TORN])
      assert.equal(statSync(`${file}.bak`).ino, ino)
    })
  }

  test('a clean file is not touched', async () => {
    const file = fileOf(WHOLE)
    const before = statSync(file)
    const result = await repair('-i.bak', file)
    assert.equal(result.code, 0)
    const after = statSync(file)
    assert.deepEqual([after.ino, after.mtimeMs], [before.ino, before.mtimeMs])
    assert.deepEqual(readdirSync(join(file, '..')), ['f.jsonl'])
  })

  test('another name of the file keeps the old content', async () => {
    const file = fileOf(WHOLE + TORN)
    linkSync(file, `${file}.other`)
    await repair('-i', file)
    assert.equal(read(`${file}.other`), WHOLE + TORN)
  })

  test('several files, damage at the beginning and the end, beyond one block', async () => {
    const filler = `{"id":0,"t":"${'x'.repeat(1000)}"}\n`.repeat(1500)
    const files = [filler + TORN, BAD + filler, filler + BAD + filler, WHOLE].map(fileOf)
    const result = await repair('-i', ...files)
    assert.equal(result.code, 1)
    assert.deepEqual(files.map(read), [filler, filler, filler + filler, WHOLE])
    assert.deepEqual(pieceTexts(`${files[0]}.removed.jsonl`), [TORN])
  })

  test('a leftover of a killed repair is removed, that of a live one and data are not', async () => {
    const file = fileOf(WHOLE + TORN)
    const leftover = (pid: number): string =>
      join(file, `../.f.jsonl.repair-${hostname().slice(0, 64)}-${pid}-00000000`)
    for (const pid of [2 ** 30, process.pid]) {
      writeFileSync(leftover(pid), 'half')
      utimesSync(leftover(pid), 1, 1)
    }
    await repair('-i', file)
    assert.equal(read(file), WHOLE)
    assert.deepEqual(
      [existsSync(leftover(2 ** 30)), existsSync(leftover(process.pid))],
      [false, true],
    )
  })

  test('a file that another process appends to is noticed', async () => {
    const file = fileOf(`${BAD}${'{"id":1}\n'.repeat(3_000_000)}`)
    const result = await run('repair-truncated', ['-i', file], {
      onStart(child) {
        // The temporary file shows that the reading has begun.
        const timer = setInterval(() => {
          const begun = readdirSync(join(file, '..')).some((name) => name.includes('.repair-'))
          if (begun) appendFileSync(file, '{"id":2}\n')
        }, 5)
        child.on('exit', () => clearInterval(timer))
      },
    })
    assert.equal(result.code, 2, result.stderr)
    assert.match(result.stderr, /another process is writing to it/)
    assert.ok(read(file).startsWith(BAD))
    assert.deepEqual(readdirSync(join(file, '..')), ['f.jsonl'])
  })

  for (const signal of ['SIGINT', 'SIGTERM', 'SIGKILL'] as const) {
    test(`${signal}: the old file is as it was, the next run repairs it`, async () => {
      const content = `${BAD}${'{"id":1}\n'.repeat(3_000_000)}`
      const file = fileOf(content)
      const result = await run('repair-truncated', ['-i', file], {
        onStart(child) {
          const timer = setInterval(() => {
            const begun = readdirSync(join(file, '..')).some((name) => name.includes('.repair-'))
            if (begun) child.kill(signal)
          }, 5)
          child.on('exit', () => clearInterval(timer))
        },
      })
      if (signal === 'SIGKILL') assert.equal(result.signal, signal)
      else {
        assert.equal(result.code, signal === 'SIGINT' ? 130 : 143)
        assert.deepEqual(readdirSync(join(file, '..')), ['f.jsonl'])
      }
      assert.equal(read(file), content)
      const again = await repair('-i', file)
      assert.equal(again.code, 1, again.stderr)
      assert.equal(read(file), content.slice(BAD.length))
      assert.deepEqual(pieceTexts(`${file}.removed.jsonl`), [BAD])
    })
  }

  test('a full disk: the old file is as it was', async () => {
    const file = fileOf(`${BAD}${'{"id":1}\n'.repeat(300_000)}`)
    const before = readFileSync(file)
    const limited = `ulimit -f 100; exec "$0" "$@"`
    const result = await run('repair-truncated', ['-i', file], { shell: limited })
    assert.equal(result.code, 2, result.stderr)
    assert.ok(readFileSync(file).equals(before))
    assert.deepEqual(readdirSync(join(file, '..')), ['f.jsonl'])
  })

  const wrong: [string, string[], RegExp][] = [
    ['standard input', ['-i'], /standard input/],
    ['standard input by name', ['-i', '-'], /standard input/],
    ['a directory', ['-i', newFolder()], /directory/],
    ['a device', ['-i', '/dev/null'], /regular file/],
    ['a missing file', ['-i', '/nowhere/f'], /no such file/],
    ['a suffix with a slash', ['-i/x', 'f'], /slash/],
  ]
  for (const [name, args, message] of wrong) {
    test(`${name}: exit 2`, async () => {
      const result = await repair(...args)
      assert.equal(result.code, 2)
      assert.match(result.stderr, message)
    })
  }

  test('a compressed file: exit 2 with the way through a pipe', async () => {
    const file = fileOf(gzipSync(WHOLE + TORN))
    const before = readFileSync(file)
    const result = await repair('-i', file)
    assert.equal(result.code, 2)
    assert.match(result.stderr, /zcat .* \| repair-truncated \| gzip > /)
    assert.ok(readFileSync(file).equals(before))
  })

  test('a locked file is left alone', async () => {
    const file = fileOf(WHOLE + TORN)
    const holder = { host: hostname(), pid: process.ppid, since: 'now' }
    writeFileSync(`${file}.lock`, JSON.stringify(holder))
    for (const args of [['-i'], ['-i', '--tail']]) {
      const result = await repair(...args, file)
      assert.equal(result.code, 2)
      assert.match(result.stderr, /\[locked\]/)
    }
    assert.equal(read(file), WHOLE + TORN)
  })
})

describe('removed pieces', () => {
  test('place, offset, length, code and text, appended behind half a line', async () => {
    const file = fileOf(`${WHOLE}{"id":\xe9}\n\n${BAD}${TORN}`)
    const removed = `${file}.out`
    writeFileSync(removed, '{"half":')
    const result = await repair('--removed', removed, file)
    assert.equal(result.stdout.toString(), WHOLE)
    const lines = read(removed).split('\n')
    assert.deepEqual([lines.shift(), lines.pop()], ['{"half":', ''])
    assert.deepEqual(
      lines.map((line) => JSON.parse(line)),
      [
        { file, line: 3, offset: 34, length: 10, code: 'syntax', text: '{"id":é}\n' },
        { file, line: 5, offset: 45, length: 10, code: 'syntax', text: BAD },
        { file, line: 6, offset: 55, length: 14, code: 'truncated', text: TORN },
      ],
    )
    assert.match(
      result.stderr,
      /f\.jsonl:5: .*10 bytes at offset 45 removed, now in .*\.out \[syntax\]/,
    )
  })

  test('bytes that are no UTF-8 are base64, large pieces too', async () => {
    const bytes = Buffer.concat([Buffer.from('{"t":"\xff'), Buffer.alloc(3_000_001, 0xff)])
    const file = fileOf(Buffer.concat([Buffer.from(WHOLE), bytes]))
    await repair('-i', file)
    assert.deepEqual(removedHex(`${file}.removed.jsonl`), [bytes.toString('hex')])
  })

  test('offsets count after decompression', async () => {
    const file = fileOf(gzipSync(WHOLE + TORN))
    const removed = `${file}.out`
    await repair('--removed', removed, file)
    assert.equal(JSON.parse(read(removed)).offset, WHOLE.length)
  })

  test('many pieces: twenty are named, the rest counted', async () => {
    const result = await repairText(WHOLE + BAD.repeat(30))
    assert.equal(result.stderr.match(/\[syntax\]/g)?.length, 20)
    assert.match(result.stderr, /10 more pieces removed/)
  })

  test('a removed file that cannot be written: exit 2, the file as it was', async () => {
    const file = fileOf(WHOLE + TORN)
    const result = await repair('-i', '--removed', join(file, 'x'), file)
    assert.equal(result.code, 2)
    assert.equal(read(file), WHOLE + TORN)
    assert.deepEqual(readdirSync(join(file, '..')), ['f.jsonl'])
  })

  test('a removed file that is an input is refused before it is harmed', async () => {
    const file = fileOf(WHOLE + TORN)
    const result = await repair('--removed', file, file)
    assert.equal(result.code, 2)
    assert.equal(read(file), WHOLE + TORN)
  })
})

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
    assert.equal((await repairText(WHOLE, '--salvage')).code, 2)
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

  test('-q says only what exit 1 means', async () => {
    const quiet = await repairText(`${WHOLE}\n${TORN}`, '-q')
    assert.deepEqual([quiet.stderr, quiet.code], ['', 0])
    const bad = await repairText(WHOLE + BAD, '-q')
    assert.match(bad.stderr, /^repair-truncated: <stdin>:3: .*\[syntax\]\n$/)
  })

  test('truncated gzip: whole lines, exit 1', async () => {
    const packed = gzipSync(WHOLE.repeat(100))
    const result = await repair(fileOf(packed.subarray(0, packed.length - 9)))
    assert.equal(result.code, 1)
    assert.match(result.stderr, /\[gzip-truncated\]/)
    assert.ok(WHOLE.repeat(100).startsWith(result.stdout.toString()))
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
