import assert from 'node:assert/strict'
import { closeSync, existsSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { command } from '../../bin/validate-jsonl.ts'
import { newFolder, run, runInProcess } from '../support/run.ts'

const GOOD = '{"id":1,"t":"a"}\n{"id":2,"t":"b"}\n'

function fileOf(content: string | Uint8Array, name = 'f.jsonl'): string {
  const path = join(newFolder(), name)
  writeFileSync(path, content)
  return path
}

function validate(...args: string[]) {
  return runInProcess(command, args)
}

/** Validates text given on standard input. */
async function validateText(text: string, ...args: string[]) {
  const result = await runInProcess(command, args, { input: text })
  const codes = [...result.stderr.matchAll(/\[([a-z0-9-]+)\]$/gm)].map(([, code]) => code)
  return { code: result.code, text: result.stdout.toString(), stderr: result.stderr, codes }
}

describe('lines', () => {
  test('valid lines pass byte for byte, each problem is one message with its place', async () => {
    const input = `${GOOD}{"a":1,}\r\n\n{"a":1e400,  "b":-0}\r\n{"a":"é" x}\n`
    const result = await validateText(input)
    assert.equal(result.text, `${GOOD}{"a":1e400,  "b":-0}\r\n`)
    assert.equal(result.code, 1)
    const lines = result.stderr.split('\n')
    assert.match(lines[0]!, /^validate-jsonl: <stdin>:3:8: .* \[syntax\]$/)
    assert.match(lines[1]!, /^validate-jsonl: <stdin>:4:1: .* \[blank\]$/)
    assert.match(lines[2]!, /^validate-jsonl: <stdin>:6:11: .* \[syntax\]$/)
    assert.equal(lines[3], 'validate-jsonl: 3 of 6 lines valid')
  })

  test('a missing final newline: a warning, and the newline', async () => {
    const result = await validateText('{"a":1}\n{"a":2}')
    assert.deepEqual([result.text, result.code], ['{"a":1}\n{"a":2}\n', 0])
    assert.match(result.stderr, /<stdin>:2:\d+: warning: .*\[no-final-newline\]/)
    const strict = await validateText('{"a":1}\n{"a":2}', '--strict')
    assert.equal(strict.code, 1)
    assert.match(strict.stderr, /<stdin>:2:\d+: (?!warning).*\[no-final-newline\]/)
  })

  test('a NUL line, NULs at the end', async () => {
    assert.deepEqual((await validateText('{"a":1}\n\0\0\n\0')).codes, ['nul', 'nul'])
  })

  test('data never drives the terminal', async () => {
    const result = await validate(fileOf('\x1b]0;x\x07\n', 'a\x1b[31m.jsonl'))
    const raw = [...Buffer.from(result.stderr)].filter((byte) => byte < 0x20 && byte !== 0x0a)
    assert.deepEqual(raw, [])
  })
})

describe('whole files', () => {
  const files: [string, string | Buffer, RegExp][] = [
    ['utf16', Buffer.from(`\ufeff${GOOD}`, 'utf16le'), /iconv/],
    ['pretty-printed', '{\n "a": 1\n}\n', /jq -c \./],
    ['json-array', '[\n1,\n2\n]\n', /jq -c '\.\[\]'/],
    ['lfs-pointer', 'version https://git-lfs.github.com/spec/v1\noid x\n', /git lfs pull/],
    ['conflict-marker', `${GOOD}<<<<<<< HEAD\n${GOOD}=======\n${GOOD}>>>>>>> x\n`, /merge/],
  ]
  for (const [code, content, way] of files) {
    test(`${code}: one message with the way out`, async () => {
      const result = await validate(fileOf(content))
      assert.equal(result.code, 1)
      assert.equal(result.stderr.match(/\[[a-z0-9-]+\]$/gm)?.join(), `[${code}]`)
      assert.match(result.stderr, way)
    })
  }

  test('a one-line array is a value like any other', async () => {
    assert.equal((await validateText('[1,2]\n')).code, 0)
  })

  test('truncated gzip: the lines before the cut, one message', async () => {
    const packed = gzipSync(GOOD.repeat(1000))
    const result = await validate(fileOf(packed.subarray(0, packed.length - 20)))
    assert.equal(result.code, 1)
    assert.deepEqual(result.stderr.match(/\[[a-z0-9-]+\]$/gm), ['[gzip-truncated]'])
  })

  test('several gzip members', async () => {
    const result = await validate(fileOf(Buffer.concat([gzipSync(GOOD), gzipSync(GOOD)])))
    assert.deepEqual([result.code, result.stdout.toString()], [0, GOOD + GOOD])
  })
})

describe('options', () => {
  test('--require-object', async () => {
    const result = await validateText('{"a":1}\n"x"\n[{}]\n12\n', '--require-object')
    assert.deepEqual(result.codes, ['not-object', 'not-object', 'not-object'])
    assert.equal(result.text, '{"a":1}\n')
  })

  test('--require', async () => {
    const input =
      '{"id":1,"m":{"x":1}}\n{"id":1}\n{"m":1,"m.x":2,"id":0}\n"x"\n{"i\\u0064":1,"m":{"x":null}}\n'
    const result = await validateText(input, '--require', 'id,m.x')
    assert.deepEqual(result.codes, ['missing-field', 'not-object'])
    assert.match(result.stderr, /<stdin>:2:1: .*'m\.x'/)
  })

  test('--require given twice', async () => {
    const result = await validateText('{"a":1}\n', '--require=a', '--require=b')
    assert.deepEqual(result.codes, ['missing-field'])
  })

  test('--allow', async () => {
    const input = '\n\ufeff{"a":1}\n{"a":1,"a":2}\n"\\ud83d"\n[[[1]]]\n'
    const all = ['blank', 'bom', 'duplicate-key', 'lone-surrogate', 'too-deep']
    const strict = await validateText(input, '--max-depth', '2')
    assert.deepEqual(strict.codes, all)
    const allowed = await validateText(input, '--max-depth', '2', '--allow', all.join())
    assert.deepEqual([allowed.code, allowed.text], [0, input])
    const wrong = await validateText('', '--allow', 'syntax')
    assert.equal(wrong.code, 2)
  })

  test('--max-depth', async () => {
    assert.equal((await validateText('[[1]]\n', '--max-depth', '2')).code, 0)
    assert.equal((await validateText('[[1]]\n', '--max-depth=1')).code, 1)
    const deep = '['.repeat(10_001) + ']'.repeat(10_001)
    assert.deepEqual((await validateText(`${deep}\n`)).codes, ['too-deep'])
  })

  test('--max-errors stops', async () => {
    const result = await validateText('x\n'.repeat(10) + GOOD, '--max-errors', '3')
    assert.deepEqual([result.code, result.codes.length], [1, 3])
  })

  test('--min-records counts over all files', async () => {
    const files = [fileOf(GOOD), fileOf(GOOD)]
    assert.equal((await validate('--min-records', '4', ...files)).code, 0)
    const few = await validate('--min-records', '5', ...files)
    assert.equal(few.code, 1)
    assert.match(few.stderr, /^validate-jsonl: 4 valid lines, --min-records 5 \[min-records\]$/m)
    assert.equal((await validateText('', '--min-records=1')).code, 1)
  })

  test('--rejects', async () => {
    const rejects = join(newFolder(), 'r')
    await validateText(`${GOOD}{"a":1,}\r\n{"b`, '--rejects', rejects)
    const pieces = readFileSync(rejects, 'utf8')
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line))
    assert.deepEqual(pieces, [
      { file: '<stdin>', line: 3, offset: 34, length: 10, code: 'syntax', text: '{"a":1,}\r\n' },
      { file: '<stdin>', line: 4, offset: 44, length: 3, code: 'truncated', text: '{"b' },
    ])
  })

  test('-q: no data, no warnings, no counts', async () => {
    const result = await validateText(`${GOOD}x\n{"a":1}`, '-q')
    assert.equal(result.text, '')
    assert.match(result.stderr, /^validate-jsonl: <stdin>:3:1: .*\[syntax\]\n$/)
  })

  test('--stats balance', async () => {
    const stats = join(newFolder(), 's')
    await validateText(`${GOOD}x\n\n{"a":1}`, '--stats', stats)
    const counts = JSON.parse(readFileSync(stats, 'utf8'))
    assert.deepEqual(counts, {
      lines: 5,
      valid: 3,
      invalid: 2,
      warnings: 1,
      problems: { syntax: 1, blank: 1 },
    })
    const shown = await validateText(GOOD, '-q', '--stats', '-')
    assert.equal(JSON.parse(shown.stderr).valid, 2)
  })

  const wrong: [string, ...string[]][] = [
    ['unknown option', '--nonsense'],
    ['unknown letter', '-z'],
    ['malformed number', '--max-errors', 'abc'],
    ['malformed number', '--max-errors=5x'],
    ['number below its least', '--max-errors=0'],
    ['negative number', '--min-records=-1'],
    ['missing value', '--require'],
    ['a list of nothing', '--require', ''],
    ['value for a flag', '--strict=yes'],
  ]
  for (const [name, ...args] of wrong) {
    test(`${name}: ${args.join(' ')} is exit 2`, async () => {
      const result = await validateText(GOOD, ...args)
      assert.deepEqual([result.code, result.text], [2, ''])
      const option = args[0]!.split('=')[0]!
      assert.ok(result.stderr.includes(option), result.stderr)
      assert.equal(result.stderr.split('\n').length, 2)
    })
  }
})

describe('files', () => {
  test('several files, -, and what follows --', async () => {
    const first = fileOf('{"a":1}')
    const dashed = fileOf('{"a":3}', '-q')
    const result = await runInProcess(command, [first, '-', '--', dashed], { input: '{"a":2}' })
    assert.equal(result.stdout.toString(), '{"a":1}\n{"a":2}\n{"a":3}\n')
    assert.equal(result.code, 0)
  })

  test('line numbers restart in each file', async () => {
    const result = await validate(fileOf(`${GOOD}x\n`), fileOf('{"a":1}\ny\n'))
    assert.match(result.stderr, /:3:1: .*\n.*:2:1: /)
  })

  test('unreadable files and directories are exit 2, the others go on', async () => {
    for (const path of ['/nowhere/f', newFolder()]) {
      const result = await validate(path, fileOf(GOOD))
      assert.deepEqual([result.code, result.stdout.toString()], [2, GOOD])
      assert.match(result.stderr, /cannot read: .*\[io\]/)
    }
  })

  test('standard input that is a file, from where it stands', async () => {
    const file = fileOf(GOOD)
    const fd = openSync(file, 'r')
    const result = await run('validate-jsonl', [], { stdin: fd })
    closeSync(fd)
    assert.deepEqual([result.code, result.stdout.toString()], [0, GOOD])
  })

  test('rejects that are an input are refused before it is harmed', async () => {
    const file = fileOf('x\n')
    const result = await validate('--rejects', file, file)
    assert.equal(result.code, 2)
    assert.equal(readFileSync(file, 'utf8'), 'x\n')
  })
})

describe('as a process', () => {
  test('the output is the input: exit 2 before it is harmed', async () => {
    const file = fileOf(GOOD)
    const stdout = openSync(file, 'a')
    const result = await run('validate-jsonl', [file], { stdout })
    closeSync(stdout)
    assert.equal(result.code, 2)
    assert.match(result.stderr, /\[same-file\]/)
    assert.equal(readFileSync(file, 'utf8'), GOOD)
  })

  test('a closed pipe ends it quietly', async () => {
    const result = await run('validate-jsonl', [fileOf(GOOD.repeat(300_000))], {
      onStart: (child) => child.stdout?.once('data', () => child.stdout?.destroy()),
    })
    assert.deepEqual([result.code, result.stderr], [0, ''])
  })

  test('/dev/full is exit 2', { skip: !existsSync('/dev/full') }, async () => {
    const full = openSync('/dev/full', 'w')
    const result = await run('validate-jsonl', [fileOf(GOOD)], { stdout: full })
    closeSync(full)
    assert.equal(result.code, 2)
    assert.match(result.stderr, /no space left/)
  })

  for (const [signal, code] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    test(`${signal}: what came so far, the counts, exit ${code}`, async () => {
      const stats = join(newFolder(), 's')
      const result = await run('validate-jsonl', ['--stats', stats], {
        input: endless(GOOD),
        onStart: (child) => child.stdout?.once('data', () => child.kill(signal)),
      })
      assert.equal(result.code, code, result.stderr)
      const { lines, valid } = JSON.parse(readFileSync(stats, 'utf8'))
      assert.equal(lines, valid)
      assert.equal(result.stdout.filter((byte) => byte === 0x0a).length, valid)
    })
  }

  test('a pipe whose writer pauses: records come when they are ready', async () => {
    let sawFirst = false
    const result = await run('validate-jsonl', [], {
      input: (async function* () {
        yield Buffer.from(GOOD)
        while (!sawFirst) await new Promise((resolve) => setTimeout(resolve, 5))
        yield Buffer.from(GOOD)
      })(),
      onStart: (child) =>
        child.stdout?.once('data', () => {
          sawFirst = true
        }),
    })
    assert.equal(result.stdout.toString(), GOOD + GOOD)
  })

  test('--help, --version, --completion', async () => {
    const help = await run('validate-jsonl', ['--help'])
    assert.equal(help.code, 0)
    assert.match(help.stdout.toString(), /^validate-jsonl: .*\n[\s\S]*Examples:[\s\S]*--max-depth/)
    const version = await run('validate-jsonl', ['--version'])
    assert.match(version.stdout.toString(), /^validate-jsonl \(completion-pipes\) \d+\.\d+\.\d+\n$/)
    for (const shell of ['bash', 'zsh', 'fish']) {
      const script = await run('validate-jsonl', ['--completion', shell])
      assert.match(script.stdout.toString(), /max-depth/)
    }
  })
})

/** A writer that never ends, and never fills memory. */
async function* endless(text: string): AsyncGenerator<Buffer, void, void> {
  for (;;) yield Buffer.from(text)
}
