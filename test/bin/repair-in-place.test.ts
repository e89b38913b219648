import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
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
    assert.equal(statSync(`${file}.removed.jsonl`).mode & 0o7777 & ~0o640, 0)
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

  const REMOVED = 'f.jsonl.removed.jsonl'
  for (const [args, files] of [
    [['-i.removed.jsonl'], ['f.jsonl']],
    [['-i.bak', '--removed', 'f.jsonl.bak'], ['f.jsonl']],
    [['-i.bak', '--salvage', '--salvaged', 'f.jsonl.bak'], ['f.jsonl']],
    [
      ['-i.bak', '--stats', 'f.jsonl.bak'],
      ['link', 'f.jsonl'],
    ],
    [['-i', '--stats', REMOVED], ['f.jsonl']],
    [['-i', '--salvage', '--salvaged', REMOVED], ['f.jsonl']],
    [['-i', '--tail', '--stats', REMOVED], ['link']],
    [['-i.bak'], ['f.jsonl', 'f.jsonl.bak']],
  ] as const) {
    test(`what is beside the file is no other output: ${args.join(' ')} ${files.join(' ')}`, async () => {
      const file = fileOf(WHOLE + TORN)
      const cwd = join(file, '..')
      symlinkSync('f.jsonl', join(cwd, 'link'))
      for (const name of [REMOVED, 'f.jsonl.bak']) writeFileSync(join(cwd, name), `old ${name}`)
      const { code, stderr } = await run('repair-truncated', [...args, ...files], { cwd })
      assert.equal(code, 2)
      assert.match(stderr, /\[same-file\]\n$/)
      assert.equal(read(file), WHOLE + TORN)
      for (const name of [REMOVED, 'f.jsonl.bak']) {
        assert.equal(read(join(cwd, name)), `old ${name}`)
      }
    })
  }

  test('a file that is named twice, and by a link, has one old file', async () => {
    const file = fileOf(WHOLE + TORN)
    const cwd = join(file, '..')
    symlinkSync('f.jsonl', join(cwd, 'link'))
    const files = ['f.jsonl', './f.jsonl', 'link']
    const { code, stderr } = await run('repair-truncated', ['-i.bak', ...files], { cwd })
    assert.equal(code, 0, stderr)
    assert.deepEqual([read(file), read(`${file}.bak`)], [WHOLE, WHOLE + TORN])
  })

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
    for (const args of [['-i'], ['-i', '--tail']]) {
      const result = await repair(...args, file)
      assert.equal(result.code, 2)
      assert.match(result.stderr, /zcat .* \| repair-truncated \| gzip > /)
    }
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
      /f\.jsonl:5:\d+: .*10 bytes at offset 45 removed, now in .*\.out \[syntax\]/,
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

  for (const options of [['-i'], ['-i', '--tail'], ['--check', '--tail']]) {
    test(`${options.join(' ')} of a FIFO is refused, and does not wait for its writer`, async () => {
      const fifo = join(newFolder(), 'fifo')
      assert.equal(spawnSync('sh', ['-c', 'mkfifo "$0"', fifo]).status, 0)
      const result = await repair(...options, fifo)
      assert.equal(result.code, 2)
      assert.match(result.stderr, /fifo: only a regular file can be repaired in place/)
    })
  }

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
