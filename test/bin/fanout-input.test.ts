import assert from 'node:assert/strict'
import {
  appendFileSync,
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Answered, fanout, linesOf, parsed, prompts, type Stats } from '../support/fanout.ts'
import { executable, newFolder, run } from '../support/run.ts'
import { answerWell, answerWith, json, lastMessage, serve } from '../support/servers.ts'
import { settleable } from '../support/settleable.ts'

const MODEL = ['--model', 'm', '--clock-speed', '50']

function idsOf(file: string): (string | number)[] {
  return parsed<Answered>(linesOf(file)).map(({ id }) => id)
}

describe('standard output', { concurrency: true }, () => {
  test('a file with a torn tail under >> is refused before anything is sent', async (t) => {
    const server = await serve(t, answerWell)
    const out = join(newFolder(), 'out.jsonl')
    writeFileSync(out, '{"id":0}\n{"id":')
    const fd = openSync(out, 'a')
    const result = await run('fanout-complete', ['--url', server.url, ...MODEL], {
      input: prompts(1),
      stdout: fd,
    })
    closeSync(fd)
    assert.equal(result.code, 2)
    assert.match(result.stderr, /repair-truncated --tail -i/)
    assert.equal(readFileSync(out, 'utf8'), '{"id":0}\n{"id":')
    assert.equal(server.requests.length + server.gets.length, 0)

    writeFileSync(out, '{"id":0}\n')
    const whole = openSync(out, 'a')
    const appended = await run('fanout-complete', ['--url', server.url, ...MODEL], {
      input: prompts(1),
      stdout: whole,
    })
    closeSync(whole)
    assert.equal(appended.code, 0, appended.stderr)
    assert.deepEqual(idsOf(out), [0, 1])
  })

  test('/dev/full is exit 2, as output and as failures', async (t) => {
    const server = await serve(t, (request, response) => {
      if (lastMessage(request) === 'p1') json(response, {}, 400)
      else answerWell(request, response)
    })
    const stats = join(newFolder(), 'stats')
    const args = ['--url', server.url, ...MODEL, '-c', '1', '--stats', stats]
    const full = openSync('/dev/full', 'a')
    const result = await run('fanout-complete', args, { input: prompts(5), stdout: full })
    closeSync(full)
    assert.equal(result.code, 2, result.stderr)
    assert.match(result.stderr, /<stdout>: cannot write: no space left/)
    const counts = JSON.parse(readFileSync(stats, 'utf8')) as Stats
    assert.equal(counts.records, counts.answered + counts.failed + counts.skipped + counts.left)
    assert.equal(counts.answered, 0)
    const failures = await run('fanout-complete', [...args, '--failures', '/dev/full'], {
      input: prompts(5),
    })
    assert.equal(failures.code, 2, failures.stderr)
    const output = await run('fanout-complete', [...args, '-o', '/dev/full'], { input: prompts(5) })
    assert.equal(output.code, 2, output.stderr)
    assert.ok(!existsSync('/dev/full.lock'))
    const nothing = await run('fanout-complete', [...args, '-o', '/dev/null'], {
      input: prompts(2),
    })
    assert.equal(nothing.code, 1, nothing.stderr)
  })

  test('--keep-order: failures that cannot be written hold back no answer', async (t) => {
    const answered = settleable<void>()
    const server = await serve(t, async (request, response, nth) => {
      if (lastMessage(request) !== 'p2') answerWell(request, response)
      if (nth === 4) answered.resolve()
      if (lastMessage(request) !== 'p2') return
      await answered.promise
      await sleep(100)
      json(response, {}, 400)
    })
    const stats = join(newFolder(), 'stats')
    const options = ['--keep-order', '--failures', '/dev/full', '--stats', stats]
    const args = ['--url', server.url, ...MODEL, ...options]
    const result = await run('fanout-complete', args, { input: prompts(5) })
    assert.equal(result.code, 2)
    assert.match(result.stderr, /\/dev\/full: cannot write: no space left/)
    const ids = parsed<Answered>(result.stdout.toString().trim().split('\n')).map(({ id }) => id)
    assert.deepEqual(ids, [1, 3, 4, 5])
    const counts = JSON.parse(readFileSync(stats, 'utf8')) as Stats
    assert.deepEqual([counts.records, counts.answered, counts.failed], [5, 4, 1])
  })

  test('a reader that goes away ends the run quietly with exit code 0', async (t) => {
    const server = await serve(t, answerWell)
    const args = ['--url', server.url, ...MODEL, '-c', '2', '-q']
    const result = await run('fanout-complete', args, {
      input: prompts(2000),
      onStart: (child) => child.stdout!.once('data', () => child.stdout!.destroy()),
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.stderr, '')
    assert.ok(server.requests.length < 2000)
  })

  test('every write holds whole lines, also of 300 kB', async (t) => {
    const server = await serve(t, (request, response) =>
      answerWith(request, response, 'é'.repeat(150_000)),
    )
    const folder = newFolder()
    const out = join(folder, 'out.jsonl')
    const log = join(folder, 'writes')
    const hook = fileURLToPath(new URL('../support/watch-writes.cjs', import.meta.url))
    const args = ['--url', server.url, ...MODEL, '-o', out]
    const result = await run('fanout-complete', args, {
      input: prompts(30),
      env: { NODE_OPTIONS: `--require ${hook}`, WRITES_LOG: log },
    })
    assert.equal(result.code, 0, result.stderr)
    const writes = readFileSync(log, 'utf8').trimEnd().split('\n')
    assert.ok(writes.length > 1, 'the writes were seen')
    assert.ok(
      writes.every((line) => line.startsWith('whole ')),
      writes.join(', '),
    )
    assert.equal(statSync(out).isFile(), true)
    assert.equal(idsOf(out).length, 30)
  })
})

describe('input files', { concurrency: true }, () => {
  test('several, -, gzip, a missing one, a directory', async (t) => {
    const { gzipSync } = await import('node:zlib')
    const server = await serve(t, answerWell)
    const folder = newFolder()
    writeFileSync(join(folder, 'a.jsonl'), '{"id":"a","prompt":"x"}')
    writeFileSync(join(folder, 'b.gz'), gzipSync('{"id":"b","prompt":"x"}\n'))
    appendFileSync(join(folder, 'b.gz'), gzipSync('{"id":"b2","prompt":"x"}\nnot json\n'))
    const args = [
      '--url',
      server.url,
      ...MODEL,
      '-c',
      '1',
      '--',
      'a.jsonl',
      'missing',
      '.',
      '-',
      'b.gz',
    ]
    const result = await run('fanout-complete', args, {
      cwd: folder,
      input: '{"id":"in","prompt":"x"}\n',
    })
    assert.equal(result.code, 2)
    const ids = parsed<Answered>(result.stdout.toString().trim().split('\n')).map(({ id }) => id)
    assert.deepEqual(ids, ['a', 'in', 'b', 'b2'])
    assert.match(result.stderr, /^fanout-complete: missing: .*no such file.*\[io\]$/m)
    assert.match(result.stderr, /^fanout-complete: \.: .*directory.*\[io\]$/m)
    assert.match(result.stderr, /^ERROR sample sha256:\w+: b\.gz:3: /m)
    assert.ok(executable('fanout-complete'))
  })

  test('damaged gzip: every whole line before the damage is asked, at any read size', async (t) => {
    const { constants, gunzipSync, gzipSync } = await import('node:zlib')
    const server = await serve(t, answerWell)
    const folder = newFolder()
    const cut = gzipSync(prompts(2000)).subarray(0, 3000)
    writeFileSync(join(folder, 'cut.gz'), cut)
    const whole = gunzipSync(cut, { finishFlush: constants.Z_SYNC_FLUSH }).toString()
    const count = whole.split('\n').length - 1
    const torn = new RegExp(
      `^fanout-complete: cut\\.gz:${count + 1}:1: warning: .*\\[gzip-truncated\\]$`,
      'm',
    )
    for (const size of [[], ['--read-size', '1M'], ['--read-size', '7']]) {
      const args = ['--url', server.url, ...MODEL, '--stats', 'stats', ...size, 'cut.gz']
      const result = await run('fanout-complete', args, { cwd: folder })
      assert.equal(result.code, 1, result.stderr)
      const ids = parsed<Answered>(result.stdout.toString().trim().split('\n')).map(({ id }) => id)
      assert.deepEqual(
        ids.toSorted((a, b) => Number(a) - Number(b)),
        Array.from({ length: count }, (_, at) => at + 1),
      )
      assert.match(result.stderr, /^fanout-complete: cut\.gz: .*ends early \[gzip-truncated\]$/m)
      assert.match(result.stderr, torn)
      assert.equal((JSON.parse(readFileSync(join(folder, 'stats'), 'utf8')) as Stats).failed, 0)
    }
  })

  test('a read error in the middle: what was read before it is asked', async (t) => {
    const server = await serve(t, answerWell)
    const broken = async function* (): AsyncGenerator<Buffer, void, void> {
      yield Buffer.from(`${prompts(1000)}{"id":1001`)
      await sleep(10)
      throw Object.assign(new Error('i/o error'), { code: 'EIO' })
    }
    const input = Readable.from(broken(), { objectMode: false })
    const result = await fanout(server.url, ['-c', '4', '--model', 'm'], { input })
    assert.equal(result.code, 2)
    assert.equal(result.records.length, 1000)
    assert.equal(result.failures.length, 0)
    assert.match(
      result.stderr,
      /^fanout-complete: <stdin>: cannot read: input\/output error \[io\]$/m,
    )
  })
})
