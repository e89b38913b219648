import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { command } from '../../bin/dedupe-completed.ts'
import { dedupe, passes } from '../support/dedupe.ts'
import { newFolder, run, runInProcess } from '../support/run.ts'

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
