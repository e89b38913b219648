import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { command } from '../../bin/dedupe-completed.ts'
import { dedupe, passes } from '../support/dedupe.ts'
import { fanout } from '../support/fanout.ts'
import { executable, newFolder, run, runInProcess } from '../support/run.ts'
import { answerWell, serve } from '../support/servers.ts'

describe('keys', () => {
  test('a record and its failure record are one, however the key is named', async () => {
    const input = '{"id":"a","k":"a","prompt":"p"}'
    const failed = `{"id":"a","status":"error","error":{"code":"x"},"partial":{},"input":${input}}`
    for (const args of [[], ['--key', 'k']]) {
      for (const lines of [
        [input, failed],
        [failed, input],
      ] as const) {
        const { code, stats } = await passes('', [...lines], [lines[0]!], args)
        assert.deepEqual([code, stats.repeated], [0, 1])
      }
      await passes('{"id":"a","request_hash":"h","input":{}}\n', [failed, input], [], args)
    }
  })

  test('the first named member that is a string or a number, in order', async () => {
    const fields = [
      'custom_id',
      'id',
      'question_id',
      'uuid',
      'sample_id',
      'conversation_id',
      'index',
    ]
    for (const [place, field] of fields.entries()) {
      const later = fields.slice(place).reverse()
      const record = `{${later.map((name) => `"${name}":"${name}"`).join(',')}}`
      await passes(`{"id":"${field}"}\n`, [record], [])
      const earlier = fields
        .slice(0, place)
        .map((name) => `"${name}":null,`)
        .join('')
      await passes(`{"id":"${field}"}\n`, [`{${earlier}"${field}":"${field}"}`], [])
      await passes(
        `{"x":1,"${field}":{"id":1}}\n{"id":"k"}\n`,
        [`{"${field}":["${field}"],"a":1}`],
        [`{"${field}":["${field}"],"a":1}`],
      ).then(({ code }) => assert.equal(code, 1))
    }
  })

  test('compare as text after decoding, numbers by their digits', async () => {
    const same: [string, string][] = [
      ['1', '"1"'],
      ['"1.0"', '1.0'],
      ['-0', '"-0"'],
      ['9007199254740993', '"9007199254740993"'],
      ['"a/b"', '"a\\/b"'],
      ['"\\u00e9"', '"é"'],
      ['"\\ud83d\\ude00"', '"😀"'],
      ['"\\u0041\\n"', '"A\\u000a"'],
      ['"__proto__"', '"__proto__"'],
      ['"constructor"', '"constructor"'],
      ['""', '""'],
      ['"\\ud800"', '"\\uD800"'],
      ['"a\\u0000b"', '"a\\u0000b"'],
      ['1E400', '"1E400"'],
    ]
    for (const [one, other] of same) {
      await passes(`{"id":${one}}\n`, [`{"id":${other},"prompt":"p"}`], [])
      await passes(`{"id":${other}}\n`, [`{"id":${one}}`], [])
    }
    const different: [string, string][] = [
      ['1', '1.0'],
      ['9007199254740993', '9007199254740992'],
      ['1e2', '100'],
      ['0', '-0'],
      ['"é"', '"e\\u0301"'],
      ['"\\ud800"', '"\\ud801"'],
      ['"\\ud800"', '"\\ufffd"'],
      ['"A"', '"a"'],
      ['" a"', '"a"'],
    ]
    for (const [one, other] of different) {
      await passes(`{"id":${one}}\n`, [`{"id":${other}}`], [`{"id":${other}}`])
    }
  })

  test('given twice: the last; under an escaped name; --key with dots, only that field', async () => {
    await passes('{"id":2}\n', ['{"id":2,"id":1}', '{"id":1,"id":2}'], ['{"id":2,"id":1}'])
    await passes('{"id":2}\n', ['{"\\u0069d":2}'], [])
    await passes(
      '{"m":{"k":5}}\n',
      ['{"id":1,"m":{"k":5}}', '{"id":1,"m":{"k":"6"}}'],
      ['{"id":1,"m":{"k":"6"}}'],
      ['--key', 'm.k'],
    )
    await passes('{"m.k":5}\n', ['{"m.k":5,"m":{"k":6}}', '{"m":{"k":5}}'], [], ['--key', 'm.k'])
    await passes(
      '{"__proto__":"x"}\n',
      ['{"__proto__":"x"}', '{"id":"x"}'],
      ['{"id":"x"}'],
      ['--key', '__proto__'],
    )
    // With --key a record without the field has the hash of its line, whatever id it has.
    await passes('{"m":1,"id":7}\n', ['{"id":7}'], ['{"id":7}'], ['--key', 'm'])
  })

  test('a record with none has its line as key: in the input, never in completed files', async () => {
    const line = '{"prompt":"p"}'
    const key = `sha256:${createHash('sha256').update(line).digest('hex').slice(0, 16)}`
    await passes(`{"id":"${key}"}\n`, [`  ${line}\t\r`, '{"prompt": "p"}'], ['{"prompt": "p"}'])
    const hashed = await passes(`${line}\n{"id":1}\n`, [line, line], [line])
    assert.equal(hashed.code, 1)
    assert.match(hashed.stderr, /done:1:1: .*key/)
    assert.equal(hashed.stats.repeated, 1)
  })

  test('white space around a record is no other content', async () => {
    for (const line of ['{"prompt":"p"}', '{"id":1,"text":"p"}']) {
      const cwd = newFolder()
      const input = `${line}\n \t${line} \r\n${line}\r\n`
      const args = ['--completed', '/dev/null', '--stats', 'stats']
      const { code, stdout, stderr } = await run('dedupe-completed', args, { cwd, input })
      assert.deepEqual([code, stdout.toString()], [0, `${line}\n`], stderr)
      assert.doesNotMatch(stderr, /key-conflict/)
    }
  })

  test('--key finds the records that fanout-complete has made with it', async (t) => {
    const server = await serve(t, answerWell)
    for (const key of ['m.k', 'prompt', 'messages.x']) {
      const input = '{"id":1,"m":{"k":"a"},"prompt":"x"}\n{"id":1,"m":{"k":"b"},"prompt":"y"}\n'
      const { stdout } = await fanout(server.url, ['--model', 'm', '--key', key], { input })
      const result = await dedupe(stdout, input, ['--key', key])
      if (key !== 'messages.x') assert.equal(result.out, '', `${key}: ${stdout}`)
    }
    const bare = '{"prompt":"no key"}\n{"messages":[{"role":"user","content":"no key"}]}\n'
    const { stdout } = await fanout(server.url, ['--model', 'm'], { input: bare })
    const result = await dedupe(stdout, bare)
    assert.equal(result.out, '')
  })
})

describe('the input', () => {
  test('is passed on byte for byte, at every read size', async () => {
    const lines =
      '{"id": 1 , "big":12345678901234567890,"z":-0,"h":1e400,"o":1.0,"e":"\\u00e9\\/"}\r\n' +
      ' {"b":1,"a":2,"id":"\u2028x\u0085"}\n\n{"id":3}\n{"id":"last"}'
    for (const size of ['1', '7', '64K']) {
      const { code, out, stats } = await dedupe('{"id":3}\n', lines, ['--read-size', size])
      assert.equal(code, 0)
      assert.equal(out, `${lines.replace('\n\n{"id":3}', '')}\n`)
      assert.deepEqual([stats.records, stats.passed, stats.completed], [4, 3, 1])
    }
  })

  test('lines that do not parse are named and not passed on, exit 1', async () => {
    const input = Buffer.concat([
      Buffer.from('{"id":1}\n{"id":2\nnull x\n{"id":"'),
      Buffer.from([0xff]),
      Buffer.from('"}\n{"id":3}\n{"id":4,"x'),
    ])
    for (const size of ['1', '7', '64K']) {
      const { code, out, stderr, stats } = await dedupe('', input, ['--read-size', size])
      assert.equal(code, 1)
      assert.equal(out, '{"id":1}\n{"id":3}\n')
      for (const line of [2, 3, 4, 6]) assert.match(stderr, new RegExp(`questions:${line}:\\d+: `))
      assert.equal(stats.invalid, 4)
    }
  })

  test('a key twice: the first passes; with other content it is a conflict, exit 1', async () => {
    const [a, b] = ['{"id":1,"prompt":"a"}', '{"id":1,"prompt":"b"}']
    const twice = await passes('', [a, a, a], [a])
    assert.equal(twice.code, 0)
    assert.match(twice.stderr, /2 records repeat/)
    assert.equal(twice.stats.repeated, 2)
    const once = await passes('', [a, a], [a])
    assert.match(once.stderr, /warning: 1 record repeats a key and was not passed on/)
    const conflict = await passes('', [a, b, a], [a])
    assert.equal(conflict.code, 1)
    assert.match(conflict.stderr, /--key.*--multiset/)
    assert.match(conflict.stderr, /questions:2:7: .*'1'/)
    const both = await passes('{"id":1}\n', [a, a], [])
    assert.equal(both.stats.completed, 2)
    assert.equal(both.stats.repeated, 0)
  })

  test('--multiset: as many as the input holds', async () => {
    const p = '{"id":"p"}'
    const lines = [p, p, p, '{"id":"q"}']
    await passes('', lines, lines, ['--multiset'])
    const one = await passes('{"id":"p"}\n', lines, [p, p, '{"id":"q"}'], ['--multiset'])
    assert.equal(one.code, 0)
    await passes(
      '{"id":"p"}\n{"id":"p"}\n{"id":"p","status":"error"}\n',
      lines,
      [p, '{"id":"q"}'],
      ['--multiset'],
    )
    await passes('{"id":"p"}\n'.repeat(5), lines, ['{"id":"q"}'], ['--multiset'])
  })

  test('>> onto the completed file in the same pipeline is safe', async () => {
    const folder = newFolder()
    const out = join(folder, 'out.jsonl')
    const questions = Array.from(
      { length: 20_000 },
      (_, id) => `{"id":${id},"pad":"${'x'.repeat(50)}"}\n`,
    )
    writeFileSync(join(folder, 'q.jsonl'), questions.join(''))
    writeFileSync(out, questions.slice(0, 5000).join(''))
    for (let round = 0; round < 2; round++) {
      const script = '"$0" "$1" --completed out.jsonl q.jsonl >> out.jsonl'
      const child = spawn('sh', ['-c', script, process.execPath, executable('dedupe-completed')], {
        cwd: folder,
        stdio: 'ignore',
      })
      const [code] = (await once(child, 'close')) as [number]
      assert.equal(code, 0)
      assert.equal(readFileSync(out, 'utf8'), questions.join(''))
    }
  })

  test('its output is refused as its input', async () => {
    const folder = newFolder()
    const file = join(folder, 'q.jsonl')
    writeFileSync(file, '{"id":1}\n')
    const fd = openSync(file, 'a')
    const result = await run('dedupe-completed', ['--completed', 'none', file], { stdout: fd })
    closeSync(fd)
    assert.equal(result.code, 2)
    assert.equal(readFileSync(file, 'utf8'), '{"id":1}\n')
  })

  test('closed pipe, /dev/full, -q, help, wrong options', async () => {
    const input = Array.from({ length: 200_000 }, (_, id) => `{"id":${id}}\n`).join('')
    const closed = await run('dedupe-completed', ['-q', '--completed', '/dev/null'], {
      input,
      onStart: (child) => child.stdout!.once('data', () => child.stdout!.destroy()),
    })
    assert.deepEqual([closed.code, closed.stderr], [0, ''])
    const full = openSync('/dev/full', 'a')
    const disk = await run('dedupe-completed', ['--completed', '/dev/null'], {
      input: '{"id":1}\n',
      stdout: full,
    })
    closeSync(full)
    assert.equal(disk.code, 2)
    const quiet = await run('dedupe-completed', ['-q', '--completed', 'none'], {
      input: '{"id":1}\n{"id":1}\n{x\n',
    })
    assert.equal(quiet.code, 1)
    assert.match(quiet.stderr, /^dedupe-completed: <stdin>:3:2: [^\n]* \[syntax\]\n$/)
    const help = await run('dedupe-completed', ['--help'])
    assert.match(
      help.stdout.toString(),
      /^dedupe-completed: [\s\S]*Examples:[\s\S]*Keys:[\s\S]*Exit code/,
    )
    for (const wrong of [['--redo', 'all'], ['--nope'], ['--read-size', '0']]) {
      const result = await runInProcess(command, ['--completed', 'none', ...wrong])
      assert.equal(result.code, 2, wrong.join(' '))
    }
  })
})
