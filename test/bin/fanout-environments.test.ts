import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, openSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { linesOf, prompts } from '../support/fanout.ts'
import { executable, newFolder, run } from '../support/run.ts'
import { type ApiServer, answerWell, type Lifetime, serve } from '../support/servers.ts'
import { settleable } from '../support/settleable.ts'

interface Job {
  out: string
  code: number | null
  stderr: string
}

/** Runs a shell script in an environment of its own; `$RUN` in it is the program with its options. */
async function job(
  url: string,
  script: string,
  { env = {}, detached = false, onStart = (_child: ChildProcess): void => {} } = {},
): Promise<Job> {
  const folder = newFolder()
  const [input, out, log] = ['in', 'out', 'log'].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ]
  writeFileSync(input, prompts(10))
  const program = [process.execPath, executable('fanout-complete'), '--url', url, '--model', 'm']
  const words = [...program, '-c', '4', '-o', out, input].map((word) => `'${word}'`).join(' ')
  const stderr = openSync(log, 'w')
  const child = spawn('/bin/sh', ['-c', script.replace('$RUN', words)], {
    env,
    detached,
    stdio: ['ignore', 'ignore', stderr],
  })
  onStart(child)
  const [code] = (await once(child, 'close')) as [number | null]
  return { out, code, stderr: readFileSync(log, 'utf8') }
}

/** A server that answers only when it is told to. */
async function held(t: Lifetime): Promise<{ server: ApiServer; release: () => void }> {
  const released = settleable<void>()
  const server = await serve(t, async (request, response) => {
    await released.promise
    answerWell(request, response)
  })
  return { server, release: () => released.resolve() }
}

async function openRequests(server: ApiServer, count: number): Promise<void> {
  while (server.requests.length < count) await sleep(10)
}

const PATH = { PATH: '/usr/bin:/bin' }

describe('how people start it', { concurrency: 2, timeout: 60_000 }, () => {
  for (const [name, script] of [
    ['nohup PROGRAM', 'exec bash -c "trap : HUP; nohup $RUN & wait; wait \\$!"'],
    ['nohup SCRIPT', 'exec nohup sh -c "$RUN; exit \\$?"'],
  ] as const) {
    test(`${name}: it goes on when the session hangs up`, async (t) => {
      const { server, release } = await held(t)
      const result = await job(server.url, script, {
        env: PATH,
        detached: true,
        onStart: (child) =>
          void (async () => {
            await openRequests(server, 4)
            process.kill(-child.pid!, 'SIGHUP')
            await sleep(200)
            release()
          })(),
      })
      assert.equal(result.code, 0, result.stderr)
      assert.equal(linesOf(result.out).length, 10)
    })
  }

  test('timeout 5: TERM, what is open finishes, the last line says how to go on', async (t) => {
    const { server, release } = await held(t)
    const result = await job(server.url, 'exec timeout 5 $RUN', {
      env: PATH,
      onStart: () =>
        void (async () => {
          await openRequests(server, 4)
          await sleep(5500)
          release()
        })(),
    })
    assert.equal(result.code, 124, result.stderr)
    assert.equal(linesOf(result.out).length, 4)
    assert.match(
      result.stderr,
      /^fanout-complete: SIGTERM: no new requests; 4 in flight have 30 s to finish$/m,
    )
    assert.match(result.stderr, /to go on: the same command with --resume.*\n$/)
  })

  for (const [name, redirect] of [
    ['standard input is /dev/null', ''],
    ['standard input is closed', ' <&-'],
  ] as const) {
    test(`cron: no terminal, no HOME, a bare PATH, ${name}`, async (t) => {
      const server = await serve(t, answerWell)
      const result = await job(server.url, `exec env -i PATH=/usr/bin:/bin $RUN${redirect}`)
      assert.equal(result.code, 0, result.stderr)
      assert.equal(linesOf(result.out).length, 10)
      assert.ok(!result.stderr.includes('\u001b') && !result.stderr.includes('\r'))
    })
  }

  test('systemd: a session of its own, TERM to the whole group of a pipeline', async (t) => {
    const { server, release } = await held(t)
    const result = await job(server.url, 'cat | $RUN | cat; wait', {
      env: PATH,
      detached: true,
      onStart: (child) =>
        void (async () => {
          await openRequests(server, 4)
          process.kill(-child.pid!, 'SIGTERM')
          await sleep(200)
          release()
        })(),
    })
    while (!result.stderr.includes('to go on')) {
      await sleep(20)
      result.stderr = readFileSync(join(result.out, '..', 'log'), 'utf8')
    }
    assert.equal(linesOf(result.out).length, 4, result.stderr)
    assert.match(result.stderr, /to go on: the same command with --resume.*\n$/)
  })
})

describe('the lock of another host', { concurrency: true, timeout: 60_000 }, () => {
  const holder = { host: 'no-such-host.invalid', pid: 1, since: '2026-11-29T02:14:07.318Z' }

  test('TERM while it is watched ends the run, and leaves the lock', {
    timeout: 25_000,
  }, async () => {
    const out = join(newFolder(), 'out')
    writeFileSync(`${out}.lock`, `${JSON.stringify(holder)}\n`)
    const args = ['--url', 'http://127.0.0.1:9/v1', '--model', 'm', '-o', out]
    const result = await run('fanout-complete', args, {
      input: prompts(1),
      onStart: (child) => child.stderr!.once('data', () => child.kill('SIGTERM')),
    })
    // Neither the watching nor the drain, 30 s each, is waited out.
    assert.equal(result.code, 143, result.stderr)
    assert.ok(existsSync(`${out}.lock`))
  })

  for (const alive of [false, true]) {
    test(`that ${alive ? 'is touched is not taken' : 'stands still is taken'}`, async (t) => {
      const server = await serve(t, answerWell)
      const out = join(newFolder(), 'out')
      writeFileSync(`${out}.lock`, `${JSON.stringify(holder)}\n`)
      let touches = 0
      const touch = setInterval(() => {
        if (alive) utimesSync(`${out}.lock`, 1000, ++touches)
      }, 50)
      t.after(() => clearInterval(touch))
      const args = ['--url', server.url, '--model', 'm', '--clock-speed', '30', '-o', out]
      const result = await run('fanout-complete', args, { input: prompts(3) })
      clearInterval(touch)
      assert.match(result.stderr, /held by process 1 on no-such-host\.invalid.*watching for 30 s/)
      assert.equal(result.code, alive ? 2 : 0, result.stderr)
      assert.equal(linesOf(out).length, alive ? 0 : 3)
      if (alive) assert.match(result.stderr, /another run writes this file: .*\[locked\]\n$/)
    })
  }
})
