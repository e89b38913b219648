import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answered, fanout, linesOf, parsed, prompts, type Stats } from '../support/fanout.ts'
import { newFolder, run } from '../support/run.ts'
import { answerWell, chat, deadUrl, json, lastMessage, serve } from '../support/servers.ts'
import { settleable } from '../support/settleable.ts'

const MODEL = ['--model', 'm', '--clock-speed', '50']

function idsOf(file: string): (string | number)[] {
  return parsed<Answered>(linesOf(file)).map(({ id }) => id)
}

/** A whole text completion. */
function plainText(text: string): object {
  return { model: 'm', choices: [{ index: 0, text, finish_reason: 'stop' }] }
}

describe('-o FILE', { concurrency: true }, () => {
  test('exists: refused, resumed or overwritten; an empty one counts as none', async (t) => {
    const server = await serve(t, answerWell)
    const folder = newFolder()
    const out = join(folder, 'out.jsonl')
    const args = ['--url', server.url, ...MODEL, '-o', out]
    writeFileSync(out, '')
    const first = await run('fanout-complete', args, { input: prompts(2) })
    assert.equal(first.code, 0, first.stderr)
    assert.equal(first.stdout.length, 0)
    assert.deepEqual(idsOf(out).sort(), [1, 2])
    assert.ok(!existsSync(`${out}.lock`))

    const before = readFileSync(out)
    const refused = await run('fanout-complete', args, { input: prompts(3) })
    assert.equal(refused.code, 2)
    assert.match(refused.stderr, /^fanout-complete: .*out\.jsonl: .*--resume.*--overwrite.*\n$/)
    assert.ok(readFileSync(out).equals(before))

    const stats = join(folder, 'stats')
    const more = [...args, '--resume', '--stats', stats]
    const resumed = await run('fanout-complete', more, { input: prompts(4) })
    assert.equal(resumed.code, 0, resumed.stderr)
    assert.deepEqual(idsOf(out).sort(), [1, 2, 3, 4])
    assert.ok(readFileSync(out).subarray(0, before.length).equals(before))
    assert.equal(server.requests.length, 4)
    const { records, answered, skipped } = JSON.parse(readFileSync(stats, 'utf8')) as Stats
    assert.deepEqual([records, answered, skipped], [4, 2, 2])

    const anew = await run('fanout-complete', [...args, '--overwrite'], { input: prompts(1) })
    assert.equal(anew.code, 0, anew.stderr)
    assert.deepEqual(idsOf(out), [1])
  })

  test('--resume: what counts as completed, and what is asked again', async (t) => {
    const server = await serve(t, answerWell)
    const out = join(newFolder(), 'out.jsonl')
    const lines = [
      '{"id":1,"status":"error","error":{"code":"x"}}',
      '{"id":"2","status":"success","conversations":[]}',
      '{"custom_id":"3","response":{"status_code":500,"body":null},"error":null}',
      '{"custom_id":"4","response":{"status_code":200,"body":{}},"error":null}',
      '{"id":5,"status":"success","finish_reason":"length","conversations":[]}',
    ]
    writeFileSync(out, `${lines.join('\n')}\n{"id":6,"status":"succ`)
    const args = ['--url', server.url, ...MODEL, '-o', out, '--resume', '-c', '1']
    const result = await run('fanout-complete', args, { input: prompts(7) })
    assert.equal(result.code, 0, result.stderr)
    assert.match(result.stderr, /warning: .*torn/)
    assert.deepEqual(server.requests.map(lastMessage), ['p1', 'p3', 'p6', 'p7'])
    assert.deepEqual(linesOf(out).slice(0, 5), lines)
    assert.deepEqual(idsOf(out).slice(5), [1, 3, 6, 7])
    const [removed] = linesOf(`${out}.removed.jsonl`)
    const piece = JSON.parse(removed!) as { text: string; code: string; offset: number }
    assert.equal(piece.text, '{"id":6,"status":"succ')
    assert.equal(piece.code, 'truncated')
    assert.equal(piece.offset, lines.join('\n').length + 1)
  })

  test('--resume asks once for a key that comes twice, as in a file of failures', async (t) => {
    const server = await serve(t, answerWell)
    const out = join(newFolder(), 'out.jsonl')
    const args = ['--url', server.url, ...MODEL, '-o', out, '--resume', '-c', '2']
    const failure = (id: number): string =>
      `{"id":${id},"status":"error","error":{"code":"x"},"input":{"id":${id},"prompt":"p${id}"}}\n`
    const input = `${failure(1)}${prompts(3)}${failure(1)}${failure(2)}`
    const result = await fanout(server.url, args.slice(2), { input })
    assert.equal(result.code, 0, result.stderr)
    assert.match(result.stderr, /warning: 3 records repeat a key and were not asked/)
    assert.match(result.stderr, /6 records: 3 answered, 0 failed, 0 completed before/)
    assert.deepEqual(idsOf(out).sort(), [1, 2, 3])
    assert.equal(result.stats.repeated, 3)
    const other = await run('fanout-complete', args, {
      input: '{"id":8,"prompt":"a"}\n{"id":8,"prompt":"b"}\n{"id":8,"prompt":"c"}\n',
    })
    assert.equal(other.code, 1)
    assert.equal(other.stderr.match(/<stdin>:2:1: the key '8' .*\[key-conflict\]/g)?.length, 1)
    assert.deepEqual(idsOf(out).sort(), [1, 2, 3, 8])
  })

  test('--on-changed stop, keep, redo', async (t) => {
    const server = await serve(t, answerWell)
    const out = join(newFolder(), 'out.jsonl')
    const args = ['--clock-speed', '50', '-o', out, '-c', '1']
    const url = server.url
    await fanout(url, [...args, '--model', 'm', '--max-tokens', '5'], { input: prompts(2) })
    const same = await fanout(
      url,
      [...args, '--resume', '--model', 'm', '--max-tokens', '5', '--no-stream'],
      { input: prompts(2) },
    )
    assert.equal(same.stats.skipped, 2)
    const other = [...args, '--resume', '--model', 'm', '--max-tokens', '6']
    const input = `{"id":3,"prompt":"p3"}\n${prompts(2)}`
    const stopped = await fanout(url, other, { input })
    assert.equal(stopped.code, 2)
    assert.match(stopped.stderr, /--on-changed/)
    const kept = await fanout(url, [...other, '--on-changed', 'keep'], { input })
    assert.equal(kept.code, 0, kept.stderr)
    assert.deepEqual(idsOf(out).sort(), [1, 2, 3])
    const redone = await fanout(url, [...other, '--on-changed', 'redo'], { input })
    assert.equal(redone.code, 0, redone.stderr)
    assert.deepEqual(idsOf(out), [1, 2, 3, 1, 2])
    // The answer that was given last is the one to compare with.
    const settled = await fanout(url, other, { input })
    assert.equal(settled.code, 0, settled.stderr)
    assert.equal(settled.stats.skipped, 3)
  })

  test('--keep-order: a record that ends the run holds back no answer behind it', async (t) => {
    const server = await serve(t, answerWell, {
      gets: {
        // So that all records wait for the name of the model, and are asked at once.
        '/v1/models': (response) =>
          void setTimeout(() => json(response, { data: [{ id: 'm' }] }), 200),
      },
    })
    const folder = newFolder()
    const [out, stats] = [join(folder, 'out.jsonl'), join(folder, 'stats')]
    const args = ['--url', server.url, '-o', out, '--resume', '--keep-order']
    const before = await run('fanout-complete', args, { input: '{"id":5,"prompt":"other"}\n' })
    assert.equal(before.code, 0, before.stderr)
    const result = await run('fanout-complete', [...args, '--stats', stats], { input: prompts(9) })
    assert.equal(result.code, 2)
    assert.match(
      result.stderr,
      /the answer to '5' that is there answers another request.*\[changed\]$/m,
    )
    assert.match(result.stderr, /^fanout-complete: 9 records: 8 answered, 0 failed/m)
    assert.deepEqual(idsOf(out), [5, 1, 2, 3, 4, 6, 7, 8, 9])
    const counts = JSON.parse(readFileSync(stats, 'utf8')) as Stats
    assert.deepEqual([counts.records, counts.answered, counts.left], [9, 8, 1])
  })

  test('a record in the input twice is not lost on resume', async (t) => {
    const server = await serve(t, answerWell)
    const out = join(newFolder(), 'out.jsonl')
    const args = ['--url', server.url, ...MODEL, '-o', out, '--resume']
    const keyed = '{"meta":{"k":"a"},"prompt":"p1"}\n{"meta":{"k":"b"},"prompt":"p2"}\n'
    const first = await run('fanout-complete', [...args, '--key', 'meta.k'], { input: keyed })
    assert.equal(first.code, 0, first.stderr)
    const again = await run('fanout-complete', [...args, '--key', 'meta.k'], { input: keyed })
    assert.equal(again.code, 0, again.stderr)
    assert.equal(server.requests.length, 2)
  })

  test('--resume --key with a member that answers have too asks nothing again', async (t) => {
    const server = await serve(t, ({ path }, response) =>
      json(response, path.endsWith('/chat/completions') ? chat('4') : plainText('of the server')),
    )
    const plain = ['--endpoint', 'completions', '--prompt-field', 'text', '--no-stream']
    const batch = (k: string): string =>
      `{"custom_id":"same","id":"${k}","method":"POST","url":"/v1/chat/completions","body":{"messages":[]}}\n`
    const answered = (k: string): string =>
      `{"id":1,"status":"${k}","model":"${k}","text":"t","request_hash":"0123456789abcdef","input":{"text":"i"}}\n`
    for (const [key, args, input] of [
      ['text', plain, '{"text":"one"}\n{"text":"two"}\n'],
      ['model', plain, '{"text":"x","model":"a"}\n{"text":"x","model":"b"}\n'],
      ['status', plain, answered('a') + answered('b')],
      ['input.text', plain, answered('a')],
      ['id', [], batch('a') + batch('b')],
    ] as const) {
      const out = join(newFolder(), 'out.jsonl')
      const all = ['--url', server.url, ...MODEL, '-o', out, '--resume', ...args, '--key', key]
      const first = await run('fanout-complete', all, { input })
      assert.equal(first.code, 0, first.stderr)
      const count = input.split('\n').length - 1
      const again = await run('fanout-complete', all, { input })
      assert.match(again.stderr, new RegExp(`0 answered, 0 failed, ${count} completed before`), key)
      const left = await run('dedupe-completed', ['--completed', out, '--key', key], { input })
      assert.equal(left.stdout.toString(), '', left.stderr)
    }
  })

  test('is refused where it is an input, whatever its name', async (t) => {
    const server = await serve(t, answerWell)
    const folder = newFolder()
    const file = join(folder, 'q.jsonl')
    const link = join(folder, 'link')
    writeFileSync(file, prompts(2))
    symlinkSync(file, link)
    for (const options of [
      ['--overwrite', '-o', link],
      ['--failures', link],
    ]) {
      const result = await run('fanout-complete', ['--url', server.url, ...MODEL, ...options, file])
      assert.equal(result.code, 2, result.stderr)
      assert.match(result.stderr, /same-file/)
      assert.equal(readFileSync(file, 'utf8'), prompts(2))
    }
    const fd = openSync(file, 'r')
    const piped = await run(
      'fanout-complete',
      ['--url', server.url, ...MODEL, '-o', file, '--overwrite'],
      { stdin: fd },
    )
    closeSync(fd)
    assert.equal(piped.code, 2, piped.stderr)
    assert.equal(readFileSync(file, 'utf8'), prompts(2))
    const self = openSync(file, 'a')
    const appended = await run('fanout-complete', ['--url', server.url, ...MODEL, file], {
      stdout: self,
    })
    closeSync(self)
    assert.equal(appended.code, 2, appended.stderr)
    assert.equal(readFileSync(file, 'utf8'), prompts(2))
    assert.equal(server.requests.length, 0)
  })

  test('a failures file that a kill has torn is mended before the first append', async (t) => {
    const server = await serve(t, (_request, response) => json(response, {}, 400))
    const failures = join(newFolder(), 'failures.jsonl')
    writeFileSync(failures, '{"id":0,"status":"error","error":{},"input":{}}\n{"id":9,"sta')
    const args = ['--url', server.url, ...MODEL, '--failures', failures]
    const result = await run('fanout-complete', args, { input: prompts(1) })
    assert.equal(result.code, 1, result.stderr)
    assert.deepEqual(
      parsed<{ id: number }>(linesOf(failures)).map(({ id }) => id),
      [0, 1],
    )
  })
})

describe('--overwrite', { concurrency: true }, () => {
  const OLD = '{"id":1,"status":"success"}\n'

  test('what ends before it begins costs nothing of the run before', async (t) => {
    const server = await serve(t, answerWell)
    const cwd = newFolder()
    writeFileSync(join(cwd, 'q'), prompts(2))
    for (const args of [
      ['--url', await deadUrl(), '--max-outage', '0', 'q'],
      ['--url', await deadUrl(), '--model', 'm', '--max-outage', '1s', 'q'],
      ['--url', server.url, 'missing'],
      ['--url', server.url, '--api-key-file', 'missing', 'q'],
    ]) {
      writeFileSync(join(cwd, 'out'), OLD)
      const all = ['--clock-speed', '50', '-o', 'out', '--overwrite', ...args]
      const result = await run('fanout-complete', all, { cwd })
      assert.equal(result.code, 2, result.stderr)
      assert.equal(readFileSync(join(cwd, 'out'), 'utf8'), OLD, args.join(' '))
    }
  })

  test('a run without an answer is one too', async (t) => {
    const server = await serve(t, (_request, response) => json(response, {}, 400))
    const cwd = newFolder()
    for (const [input, code] of [
      [prompts(2), 1],
      ['', 0],
    ] as const) {
      writeFileSync(join(cwd, 'out'), OLD)
      const args = ['--url', server.url, ...MODEL, '-o', 'out', '--overwrite']
      const result = await run('fanout-complete', args, { cwd, input })
      assert.equal(result.code, code, result.stderr)
      assert.equal(readFileSync(join(cwd, 'out'), 'utf8'), '')
    }
  })
})

test('an output that is replaced under >> ends the run, exit 2', async (t) => {
  const cwd = newFolder()
  const server = await serve(t, async (request, response, nth) => {
    if (nth === 1) {
      renameSync(join(cwd, 'new'), join(cwd, 'out'))
      await sleep(50)
    }
    answerWell(request, response)
  })
  writeFileSync(join(cwd, 'new'), '')
  const stdout = openSync(join(cwd, 'out'), 'a')
  const args = ['--url', server.url, ...MODEL, '-c', '1']
  const result = await run('fanout-complete', args, { cwd, input: prompts(3), stdout })
  closeSync(stdout)
  assert.equal(result.code, 2)
  assert.match(result.stderr, /<stdout>: .*removed or replaced.*\[replaced\]\n/)
})

test('an input that is not there is no output either', async (t) => {
  const server = await serve(t, answerWell)
  const cwd = newFolder()
  const args = ['--url', server.url, ...MODEL, '-o', 'both', 'both']
  const result = await run('fanout-complete', args, { cwd })
  assert.equal(result.code, 2)
  assert.match(result.stderr, /both: the input is also the output/)
  assert.ok(!existsSync(join(cwd, 'both')))
})

describe('the lock', { concurrency: true }, () => {
  test('is one for all names of a file', async (t) => {
    const released = settleable<void>()
    const server = await serve(t, async (request, response) => {
      await released.promise
      answerWell(request, response)
    })
    const cwd = newFolder()
    const args = ['--url', server.url, ...MODEL, '-o']
    symlinkSync('out', join(cwd, 'link'))
    const first = run('fanout-complete', [...args, 'link'], { cwd, input: prompts(1) })
    while (server.requests.length === 0) await sleep(10)
    assert.ok(existsSync(join(cwd, 'out.lock')))
    for (const name of ['out', 'link']) {
      const again = [...args, name, '--resume']
      const second = await run('fanout-complete', again, { cwd, input: prompts(2) })
      assert.equal(second.code, 2)
      assert.match(second.stderr, /another run writes this file: .*out\.lock.*\[locked\]\n$/)
    }
    const repair = await run('repair-truncated', ['-i', 'link'], { cwd })
    assert.equal(repair.code, 2, repair.stderr)
    released.resolve()
    assert.equal((await first).code, 0)
    assert.ok(!existsSync(join(cwd, 'out.lock')))
  })

  test('a second writer is refused while the first lives, a stale lock is taken over', async (t) => {
    const released = settleable<void>()
    const server = await serve(t, async (request, response) => {
      await released.promise
      answerWell(request, response)
    })
    const out = join(newFolder(), 'out.jsonl')
    const args = ['--url', server.url, ...MODEL, '-o', out]
    const first = run('fanout-complete', args, { input: prompts(1) })
    while (server.requests.length === 0) await sleep(10)
    const second = await run('fanout-complete', [...args, '--resume'], { input: prompts(2) })
    assert.equal(second.code, 2)
    assert.match(second.stderr, /another run writes this file: process \d+.*\[locked\]\n$/)
    assert.equal(server.requests.length, 1)
    released.resolve()
    assert.equal((await first).code, 0)

    const gone = spawn(process.execPath, ['-e', ''])
    await new Promise((resolve) => gone.once('exit', resolve))
    const holder = { host: hostname(), pid: gone.pid, since: 'x' }
    writeFileSync(`${out}.lock`, `${JSON.stringify(holder)}\n`)
    const third = await run('fanout-complete', [...args, '--resume'], { input: prompts(2) })
    assert.equal(third.code, 0, third.stderr)
    assert.deepEqual(idsOf(out), [1, 2])
    assert.ok(!existsSync(`${out}.lock`))
  })

  test('goes with a run that ends with an error', async (t) => {
    const server = await serve(t, (_request, response) => json(response, {}, 401))
    const out = join(newFolder(), 'out.jsonl')
    const args = ['--url', server.url, ...MODEL, '-o', out]
    const result = await run('fanout-complete', args, { input: prompts(1) })
    assert.equal(result.code, 2)
    assert.ok(!existsSync(`${out}.lock`))
  })
})
