import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { type Answered, linesOf, parsed, prompts } from '../support/fanout.ts'
import { newFolder, type Result, run } from '../support/run.ts'
import type { Lifetime } from '../support/servers.ts'

const preload = fileURLToPath(new URL('../support/stale-handles.cjs', import.meta.url))

interface Place {
  server: Simulator
  cwd: string
  ask: (...args: string[]) => Promise<Result>
  ids: (...files: string[]) => number[]
}

async function place(lifetime: Lifetime, records = 40, speed = 500): Promise<Place> {
  const server = await startSimulator({ speed, meanTokens: 50 })
  lifetime.after(() => server.close())
  const cwd = newFolder()
  writeFileSync(join(cwd, 'q.jsonl'), prompts(records))
  return {
    server,
    cwd,
    ask: (...args) =>
      run('fanout-complete', ['--url', `${server.url}/v1`, ...args, 'q.jsonl'], { cwd }),
    ids: (...files) =>
      files
        .flatMap((file) => parsed<Answered>(linesOf(join(cwd, file))).map(({ id }) => Number(id)))
        .sort((a, b) => a - b),
  }
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, at) => at + 1)
const RAW = ['-o', 'raw.{shard}.jsonl', '--resume', '--completed', 'raw.*.jsonl']

describe('--completed', () => {
  test('another number of shards needs no conversion, and torn tails are in nobody’s way', async (t) => {
    const { server, cwd, ask, ids } = await place(t)
    for (const shard of ['0/3', '1/3']) assert.equal((await ask('--shard', shard, ...RAW)).code, 0)
    const file = join(cwd, 'raw.0.jsonl')
    writeFileSync(file, `${readFileSync(file, 'utf8')}{"id":77,"status":"succ`)
    for (const index of upTo(5)) {
      const { code, stderr } = await ask('--shard', `${index - 1}/5`, ...RAW)
      assert.equal(code, 0, stderr)
    }
    assert.ok(existsSync(`${file}.removed.jsonl`), 'a file that the glob finds too')
    assert.deepEqual(ids(...upTo(5).map((at) => `raw.${at - 1}.jsonl`)), upTo(40))
    assert.equal(server.stats().requests.completed, 40)
  })

  test('without -o, of no file, and of its own file', async (t) => {
    const { server, ask, ids, cwd } = await place(t)
    const first = await ask('--completed', 'none*.jsonl', '-o', 'a.jsonl')
    assert.equal(first.code, 0, first.stderr)
    assert.match(first.stderr, /none\*\.jsonl: warning: no such file/)
    const again = await ask('--completed', '*.jsonl', '-o', 'a.jsonl', '--resume', '--shard', '0/1')
    assert.match(again.stderr, /shard 0 of 1: nothing to do, all of it is answered/)
    const out = await run(
      'fanout-complete',
      ['--url', `${server.url}/v1`, '--completed', 'a.jsonl', 'q.jsonl'],
      { cwd },
    )
    assert.equal(out.stdout.length, 0)
    assert.deepEqual(ids('a.jsonl'), upTo(40))
    const both = await ask('--completed', 'a.jsonl', '-o', 'a.jsonl', '--overwrite')
    assert.equal(both.code, 2)
    assert.deepEqual(ids('a.jsonl'), upTo(40))
  })

  test('files of another run are refused, whatever their names', async (t) => {
    const { ask, server } = await place(t)
    await ask('-o', 'raw.m.jsonl')
    for (const name of ['raw.a.jsonl', 'raw.z.jsonl']) {
      // The other run has other parameters: its request hashes differ.
      assert.equal((await ask('-o', name, '--temperature', '1')).code, 0)
      const before = server.stats().requests.total
      const args = ['-o', 'raw.m.jsonl', '--resume', '--completed', name]
      const refused = await ask(...args)
      assert.equal(refused.code, 2)
      assert.match(refused.stderr, new RegExp(`${name}: .*answers another request`))
      assert.equal((await ask(...args, '--on-changed', 'keep')).code, 0)
      // What is answered as it is asked now is not asked again, whatever another file says.
      assert.equal((await ask(...args, '--on-changed', 'redo')).code, 0)
      assert.equal(server.stats().requests.completed + 0, before)
    }
  })
})

describe('the lock over hosts', () => {
  const holderOf = (cwd: string, holder: object): void =>
    writeFileSync(join(cwd, 'raw.jsonl.lock'), JSON.stringify(holder))
  const foreign = { host: 'node17', pid: 4711, since: '2026-11-29T02:00:00.000Z' }

  test('--take-lock takes another host’s lock at once', async (t) => {
    const { cwd, ask, ids } = await place(t)
    holderOf(cwd, foreign)
    const { code, stderr } = await ask('-o', 'raw.jsonl', '--take-lock')
    assert.equal(code, 0, stderr)
    assert.doesNotMatch(stderr, /watching/)
    assert.deepEqual(ids('raw.jsonl'), upTo(40))
    assert.ok(!existsSync(join(cwd, 'raw.jsonl.lock')))
  })

  test('a living process of this host is never robbed, and is named', async (t) => {
    const { cwd, ask } = await place(t)
    holderOf(cwd, { ...foreign, host: hostname(), pid: process.pid })
    const { code, stderr } = await ask('-o', 'raw.jsonl', '--take-lock')
    assert.equal(code, 2)
    assert.match(stderr, new RegExp(`process ${process.pid} on ${hostname()}, since 2026-11-29`))
  })

  test('a process number of another container says nothing here', async (t) => {
    const { cwd, ask } = await place(t)
    holderOf(cwd, { ...foreign, host: hostname(), pid: process.pid, space: 'other pid:[1]' })
    assert.equal((await ask('-o', 'raw.jsonl', '--take-lock')).code, 0)
  })

  test('without it a lock that lives is watched, and its holder is named', async (t) => {
    const { cwd, ask } = await place(t)
    holderOf(cwd, foreign)
    const timer = setInterval(() => holderOf(cwd, foreign), 300)
    t.after(() => clearInterval(timer))
    const { code, stderr } = await ask('-o', 'raw.jsonl')
    clearInterval(timer)
    assert.equal(code, 2)
    assert.match(stderr, /held by process 4711 on node17.*watching for 30 s/)
    assert.match(stderr, /another run writes this file: process 4711 on node17/)
  })

  test('a run whose lock another host took ends and leaves that lock alone', async (t) => {
    const { cwd, server } = await place(t, 40, 1)
    const args = ['--url', `${server.url}/v1`, '-o', 'raw.jsonl', 'q.jsonl']
    const result = await run('fanout-complete', args, {
      cwd,
      onStart: () => {
        void (async () => {
          while (server.stats().requests.open === 0) await sleep(10)
          holderOf(cwd, foreign)
        })()
      },
    })
    assert.equal(result.code, 2, result.stderr)
    assert.match(result.stderr, /process 4711 on node17.* has taken this file over/)
    assert.ok(existsSync(join(cwd, 'raw.jsonl.lock')))
  })
})

test('two tasks of one shard: the second one is stopped by the lock', async (t) => {
  const { cwd, server, ask } = await place(t, 40, 1)
  const shard = ['--shard', '0/2', '-o', 'raw.{shard}.jsonl']
  const ended = run('fanout-complete', ['--url', `${server.url}/v1`, ...shard, 'q.jsonl'], {
    cwd,
    onStart: (child) => {
      t.after(() => child.kill('SIGKILL'))
    },
  })
  while (server.stats().requests.open === 0) await sleep(10)
  const second = await ask(...shard, '--resume', '--take-lock')
  assert.equal(second.code, 2)
  assert.match(second.stderr, /raw\.0\.jsonl: another run writes this file: process \d+ on /)
  const { pid } = JSON.parse(readFileSync(join(cwd, 'raw.0.jsonl.lock'), 'utf8')) as { pid: number }
  process.kill(pid, 'SIGKILL')
  await ended
})

test('--drain-on: the signal of the scheduler drains as TERM does', async (t) => {
  const { cwd, server } = await place(t, 200, 20)
  for (const name of ['USR1', 'USR2'] as const) {
    const before = server.stats().requests.total
    const args = ['--url', `${server.url}/v1`, '-c', '4', '--drain-on', name, '-o', `${name}.jsonl`]
    const { code, stderr } = await run('fanout-complete', [...args, 'q.jsonl'], {
      cwd,
      onStart: (child) => {
        void (async () => {
          while (server.stats().requests.total < before + 6) await sleep(5)
          child.kill(`SIG${name}`)
        })()
      },
    })
    assert.equal(code, 143, stderr)
    assert.match(stderr, new RegExp(`SIG${name}: no new requests; \\d+ in flight have 30 s`))
    const answers = linesOf(join(cwd, `${name}.jsonl`)).length
    assert.equal(answers, server.stats().requests.total - before, 'what was in flight is written')
    assert.ok(answers < 200)
  }
})

test('a stale handle is opened again: nothing is lost, nothing asked twice', async (t) => {
  const { cwd, server, ids } = await place(t)
  writeFileSync(join(cwd, 'log'), '')
  const args = ['--require', preload]
  const env = { STALE_FILES: 'q.jsonl:out.jsonl', STALE_LOG: 'log', NODE_OPTIONS: args.join(' ') }
  const all = ['--url', `${server.url}/v1`, '-o', 'out.jsonl', '--read-size', '100', 'q.jsonl']
  const { code, stderr } = await run('fanout-complete', all, { cwd, env })
  assert.equal(code, 0, stderr)
  assert.deepEqual(ids('out.jsonl'), upTo(40))
  assert.equal(server.stats().requests.total, 40)
  const hit = readFileSync(join(cwd, 'log'), 'utf8').trim().split('\n').sort()
  for (const call of ['open out.jsonl', 'open q.jsonl', 'read q.jsonl', 'write out.jsonl']) {
    assert.ok(hit.includes(call), `${call}: ${hit.join(', ')}`)
  }
  assert.match(stderr, /stale file handle/)
})
