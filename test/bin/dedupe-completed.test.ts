import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { command } from '../../bin/dedupe-completed.ts'
import { fanout } from '../support/fanout.ts'
import { executable, newFolder, run, runInProcess } from '../support/run.ts'
import { answerWell, serve } from '../support/servers.ts'

interface Outcome {
  code: number | null
  out: string
  stderr: string
  stats: Record<string, number> & { completed_files: Record<string, number> }
}

/** Runs dedupe-completed in this process over one file of answers and one of questions. */
async function dedupe(
  completed: string | Buffer | undefined,
  input: string | Buffer,
  args: string[] = [],
): Promise<Outcome> {
  const folder = newFolder()
  const [done, questions, stats] = ['done', 'questions', 'stats'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  if (completed !== undefined) writeFileSync(done, completed)
  writeFileSync(questions, input)
  const all = ['--completed', done, '--stats', stats, ...args, questions]
  const { code, stdout, stderr } = await runInProcess(command, all)
  const text = (() => {
    try {
      return readFileSync(stats, 'utf8')
    } catch {
      return '{}'
    }
  })()
  const counts = JSON.parse(text) as Outcome['stats']
  if (counts.records !== undefined) {
    const { records, passed, completed: known, repeated, invalid } = counts
    assert.equal(records, passed! + known! + repeated! + invalid!)
  }
  return { code, out: stdout.toString(), stderr, stats: counts }
}

/** Asserts which of the lines are passed on. */
async function passes(completed: string, lines: string[], expected: string[], args: string[] = []) {
  const result = await dedupe(completed, lines.map((line) => `${line}\n`).join(''), args)
  assert.deepEqual(result.out.split('\n').slice(0, -1), expected, result.stderr)
  return result
}

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

describe('what is completed', () => {
  const question = '{"id":"k","prompt":"p"}'
  const not = [
    '{"id":"k","status":"error"}',
    '{"id":"k","status":"failed"}',
    '{"id":"k","status":"SUCCESS"}',
    '{"id":"k","status":1}',
    '{"id":"k","status":"success","error":{"code":"x"}}',
    '{"id":"k","error":"x"}',
    '{"id":"k","error":""}',
    '{"id":"k","error":false}',
    '{"custom_id":"k","response":{"status_code":500,"body":null},"error":null}',
    '{"custom_id":"k","response":{"status_code":199}}',
    '{"custom_id":"k","response":{"status_code":300}}',
    '{"custom_id":"k","response":null,"error":{"code":"x","message":"y"}}',
    '{"id":"k","\\u0065rror":1}',
  ]
  for (const line of not) {
    test(`not: ${line}`, async () => {
      const { code, stats } = await passes(`${line}\n`, [question], [question])
      assert.equal(code, 0)
      assert.equal(stats.completed_files.failed, 1)
    })
  }
  const yes = [
    '{"id":"k"}',
    '{"id":"k","status":"success"}',
    '{"id":"k","status":"completed","error":null}',
    '{"id":"k","status":null}',
    '{"custom_id":"k","response":{"status_code":200,"body":{"error":"inside"}},"error":null}',
    '{"custom_id":"k","response":{"status_code":299}}',
    '{"id":"k","response":"text"}',
    '{"id":"k","nested":{"status":"error","error":1}}',
    ' {"id":"k"} \r',
    '\ufeff{"id":"k"}',
    '\0\0{"id":"k"}\0',
  ]
  for (const line of yes) {
    test(`is: ${JSON.stringify(line)}`, async () => {
      const { code, stderr } = await passes(`${line}\n`, [question], [])
      assert.equal(code, 0, stderr)
    })
  }

  test('any success completes, whatever stands before or after it', async () => {
    const [good, bad] = ['{"id":"k","status":"success"}\n', '{"id":"k","status":"error"}\n']
    for (const file of [good + bad, bad + good, bad + bad + good + bad])
      await passes(file, [question], [])
  })

  test('an unusable line is named, exit 1; a torn tail is named, exit 0', async () => {
    const other = '{"id":"o"}\n'
    const broken = await passes(`${other}{"id":"k"\n\n${other}[1]\n`, [question], [question])
    assert.equal(broken.code, 1)
    assert.match(broken.stderr, /done:2:1: /)
    assert.match(broken.stderr, /done:5:1: /)
    const torn = await passes(`${other}{"id":"k","status":"success","x`, [question], [question])
    assert.equal(torn.code, 0, torn.stderr)
    assert.match(torn.stderr, /done:2:1: warning: .*torn/)
    const unterminated = await passes(`${other}{"id":"k"}`, [question], [])
    assert.equal(unterminated.code, 0)
  })

  test('a file with whole lines but no usable record is exit 2', async () => {
    for (const file of ['{"prompt":"p"}\n', 'log line\n', '[]\n']) {
      const { code, out, stderr } = await dedupe(file, `${question}\n`)
      assert.equal(code, 2, stderr)
      assert.equal(out, '')
    }
    const keyed = await dedupe('{"id":1}\n', `${question}\n`, ['--key', 'other'])
    assert.equal(keyed.code, 2)
    for (const file of ['', '\n\n', '{"id":"k","stat', '{"id":"x","status":"error"}\n']) {
      const { code, out } = await dedupe(file, `${question}\n`)
      assert.deepEqual([code, out], [0, `${question}\n`])
    }
  })

  test('a missing file is an empty one with a warning; a directory is exit 2', async () => {
    const missing = await dedupe(undefined, `${question}\n`)
    assert.deepEqual([missing.code, missing.out], [0, `${question}\n`])
    assert.match(missing.stderr, /warning: .*no such file/)
    const folder = newFolder()
    const directory = await runInProcess(command, ['--completed', folder, '/dev/null'])
    assert.equal(directory.code, 2)
    const none = await runInProcess(command, ['/dev/null'])
    assert.equal(none.code, 2)
    assert.match(none.stderr, /--completed/)
  })

  test('several files, globs, gzip', async () => {
    const folder = newFolder()
    mkdirSync(join(folder, 'sub'))
    writeFileSync(join(folder, 'raw.1.jsonl'), '{"id":1}\n')
    writeFileSync(join(folder, 'raw.2.jsonl'), gzipSync('{"id":2}\n'))
    appendFileSync(join(folder, 'raw.2.jsonl'), gzipSync('{"id":3}\n'))
    writeFileSync(join(folder, 'raw.[x].jsonl'), '{"id":4}\n')
    writeFileSync(join(folder, 'sub', 'a'), '{"id":5}\n')
    writeFileSync(join(folder, '.hidden.jsonl'), '{"id":6}\n')
    const input = [1, 2, 3, 4, 5, 6, 7].map((id) => `{"id":${id}}\n`).join('')
    const result = await run(
      'dedupe-completed',
      ['--completed', '*.jsonl', '--completed', 's?b/[ab]', '--completed', 'no*'],
      { cwd: folder, input },
    )
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.stdout.toString(), '{"id":6}\n{"id":7}\n')
    assert.match(result.stderr, /no\*: warning/)
    const exact = await run('dedupe-completed', ['--completed', 'raw.[x].jsonl'], {
      cwd: folder,
      input,
    })
    assert.equal(exact.stdout.toString().includes('{"id":4}'), false)
  })

  test('a truncated gzip file: its whole lines count, exit 1', async () => {
    const packed = gzipSync(
      Array.from({ length: 2000 }, (_, id) => `{"id":${id},"x":"${Math.sin(id)}"}\n`).join(''),
    )
    const { code, out, stderr } = await dedupe(
      packed.subarray(0, packed.length - 2000),
      '{"id":1}\n{"id":"new"}\n',
    )
    assert.equal(code, 1, stderr)
    assert.equal(out, '{"id":"new"}\n')
  })
})

describe('shortcomings', () => {
  const forms: [string, string][] = [
    [
      'length',
      '{"id":"k","status":"success","finish_reason":"length","conversations":[{"role":"assistant","content":"x"}]}',
    ],
    [
      'length',
      '{"custom_id":"k","response":{"status_code":200,"body":{"choices":[{"finish_reason":"length","message":{"content":"x"}}]}}}',
    ],
    [
      'length',
      '{"id":"k","response":{"choices":[{"finish_reason":"length","message":{"content":"x"}}]}}',
    ],
    ['length', '{"id":"k","choices":[{"finish_reason":"length","text":"x"}]}'],
    ['content_filter', '{"id":"k","finish_reason":"content_filter","text":"x"}'],
    [
      'empty',
      '{"id":"k","status":"success","finish_reason":"stop","conversations":[{"role":"user","content":"q"},{"role":"assistant","content":""}]}',
    ],
    [
      'empty',
      '{"id":"k","conversations":[{"role":"assistant","content":null,"reasoning_content":"r"}]}',
    ],
    [
      'empty',
      '{"custom_id":"k","response":{"status_code":200,"body":{"choices":[{"finish_reason":"stop","message":{"content":""}}]}}}',
    ],
    [
      'empty',
      '{"custom_id":"k","response":{"status_code":200,"body":{"choices":[{"finish_reason":"stop","message":{"content":null}}]}}}',
    ],
    ['empty', '{"id":"k","status":"success","prompt":"p","text":""}'],
    ['length', turned('b', 'length')],
    ['empty', turned('', 'stop')],
  ]
  for (const [word, line] of forms) {
    test(`${word}: ${line.slice(0, 90)}`, async () => {
      const question = '{"id":"k","prompt":"p"}'
      const kept = await passes(`${line}\n`, [question], [])
      assert.equal(kept.stats.completed_files[word], 1, kept.stderr)
      assert.match(
        kept.stderr,
        /1 answer is .*: it counts as completed \(--redo \w+ runs it again\)$/m,
      )
      assert.match(kept.stderr, /^dedupe-completed: 1 record: /m)
      await passes(`${line}\n`, [question], [question], ['--redo', word])
      const others = ['length', 'content_filter', 'empty'].filter((other) => other !== word)
      await passes(`${line}\n`, [question], [], ['--redo', others.join(',')])
      // A good answer beside it completes the key all the same.
      await passes(`${line}\n{"id":"k"}\n`, [question], [], ['--redo', word])
    })
  }
  test('tool calls are no empty answer', async () => {
    const line =
      '{"id":"k","conversations":[{"role":"assistant","content":null,"tool_calls":[{"id":"c"}]}]}'
    await passes(`${line}\n`, ['{"id":"k"}'], [], ['--redo', 'empty'])
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

/** A conversation whose second answer is a good one. */
function turned(first: string, reason: string): string {
  const conversations = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: first },
    { role: 'user', content: 'c' },
    { role: 'assistant', content: 'd' },
  ]
  const turns = [{ finish_reason: reason }, { finish_reason: 'stop' }]
  return JSON.stringify({
    id: 'k',
    status: 'success',
    conversations,
    finish_reason: 'stop',
    turns,
  })
}
