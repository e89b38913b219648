import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertBalanced, linesOf, prompts, type Stats } from '../support/fanout.ts'
import { newFolder, type Result, run } from '../support/run.ts'
import {
  answerWell,
  beginStream,
  delta,
  events,
  json,
  type Lifetime,
  lastMessage,
  serve,
} from '../support/servers.ts'
import { settleable } from '../support/settleable.ts'

interface Interrupted extends Result {
  out: string[]
  failures: string[]
  stats: Stats
  requests: number
}

/**
 * Runs fanout-complete with four records at a time and ten in all, sends it signals once four
 * requests are open, and lets the server answer only after the first signal has been reported.
 */
async function interrupted(
  t: Lifetime,
  signals: NodeJS.Signals[],
  args: string[] = [],
  { answers = true } = {},
): Promise<Interrupted> {
  const release = settleable<void>()
  const server = await serve(t, async (request, response) => {
    beginStream(response).write(events(delta({ content: 'half' })))
    await release.promise
    if (answers) response.end(events(delta({ content: ' whole' }, 'stop')))
    void request
  })
  const folder = newFolder()
  const [output, stats, failures] = ['out', 'stats', 'failures'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  const files = ['-o', output, '--stats', stats, '--failures', failures]
  const all = ['--url', server.url, '--model', 'm', '-c', '4', ...files, ...args]
  let stderr = ''
  const drive = async (child: ChildProcess): Promise<void> => {
    child.stderr!.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    while (server.requests.length < 4) await sleep(10)
    for (const [index, signal] of signals.entries()) {
      child.kill(signal)
      while (!stderr.includes(index === 0 ? 'in flight' : '') && child.exitCode === null)
        await sleep(5)
    }
    release.resolve()
  }
  const result = await run('fanout-complete', all, {
    input: prompts(10),
    onStart: (child) => void drive(child),
  })
  const counts = JSON.parse(readFileSync(stats, 'utf8')) as Stats
  assertBalanced(counts)
  assert.ok(!existsSync(`${output}.lock`))
  return {
    ...result,
    out: linesOf(output),
    failures: linesOf(failures),
    stats: counts,
    requests: server.requests.length,
  }
}

describe('signals', { concurrency: true }, () => {
  test('first INT: open requests finish, no new ones; 130', async (t) => {
    const result = await interrupted(t, ['SIGINT'])
    assert.equal(result.code, 130, result.stderr)
    assert.equal(result.out.length, 4)
    assert.equal(result.requests, 4)
    assert.match(result.stderr, /^fanout-complete: SIGINT: .*4 .*second/m)
    assert.match(result.stderr.trimEnd().split('\n').at(-1)!, /to go on: .*--resume/)
    assert.equal(result.stats.failed, 0)
    assert.ok(result.stats.left >= 4)
    assert.deepEqual(result.failures, [])
  })

  for (const retries of ['0', '5']) {
    test(`second INT: at once, with --retries ${retries}; 130 and nothing counts as failed`, async (t) => {
      const result = await interrupted(t, ['SIGINT', 'SIGINT'], ['--retries', retries], {
        answers: false,
      })
      assert.equal(result.code, 130, result.stderr)
      assert.deepEqual(result.out, [])
      assert.equal(result.stats.failed, 0, result.stderr)
      assert.doesNotMatch(result.stderr, /^ERROR/m)
    })
  }

  for (const [signal, code] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    test(`${signal}: open requests finish within --drain, and the rest of it is not waited for; ${code}`, async (t) => {
      const result = await interrupted(t, [signal], ['--drain', '24h'])
      assert.equal(result.code, code, result.stderr)
      assert.equal(result.out.length, 4)
      assert.match(result.stderr, /to go on: /)
    })
  }

  test('TERM: what does not finish within --drain is given up', async (t) => {
    const result = await interrupted(t, ['SIGTERM'], ['--drain', '300ms', '--retries', '0'], {
      answers: false,
    })
    assert.equal(result.code, 143, result.stderr)
    assert.deepEqual(result.out, [])
    assert.equal(result.stats.failed, 0, result.stderr)
  })

  test('a signal while standard input is open and silent', async (t) => {
    const server = await serve(t, answerWell)
    const { spawn } = await import('node:child_process')
    const { executable } = await import('../support/run.ts')
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      const args = [executable('fanout-complete'), '--url', server.url, '--model', 'm']
      const child = spawn(process.execPath, args)
      child.stdin.write(prompts(2))
      let lines = 0
      child.stdout.on('data', (chunk: Buffer) => {
        lines += chunk.toString().split('\n').length - 1
      })
      while (lines < 2) await sleep(10)
      child.kill(signal)
      const [exit] = (await once(child, 'close')) as [number]
      assert.equal(exit, code)
    }
  })

  test('a signal during an outage and during a pause before a retry', async (t) => {
    const server = await serve(
      t,
      (_request, response, nth) => {
        if (nth === 0) return answerWell(_request, response)
        response.setHeader('retry-after', '3600')
        json(response, {}, nth === 1 ? 429 : 503)
      },
      { gets: { '/health': (response) => void response.writeHead(503).end() } },
    )
    for (const first of [1, 2]) {
      const result = await run(
        'fanout-complete',
        ['--url', server.url, '--model', 'm', '-c', '1', '--retries', '9'],
        {
          input: prompts(3),
          onStart: (child) => {
            const wait =
              first === 1 ? () => server.requests.length >= 3 : () => server.gets.length >= 2
            void (async () => {
              while (!wait()) await sleep(10)
              await sleep(100)
              child.kill('SIGINT')
            })()
          },
        },
      )
      assert.equal(result.code, 130, result.stderr)
    }
  })

  for (const [path, signal, code] of [
    ['/v1/models', 'SIGINT', 130],
    ['/v1/models', 'SIGTERM', 143],
    ['/health', 'SIGINT', 130],
  ] as const) {
    test(`${signal} while the server is silent to GET ${path}`, async (t) => {
      const server = await serve(t, (_request, response) => json(response, {}, 503), {
        gets: { [path]: () => {} },
      })
      const stats = join(newFolder(), 'stats')
      // Slowed down so that the limit of such a question does not come to help.
      const args = ['--url', server.url, '--clock-speed', '0.001', '--stats', stats]
      const result = await run('fanout-complete', args, {
        input: prompts(3),
        onStart: (child) => {
          const kill = setTimeout(() => child.kill('SIGKILL'), 20_000)
          void once(child, 'exit').then(() => clearTimeout(kill))
          void (async () => {
            while (!server.gets.includes(path)) await sleep(10)
            await sleep(100)
            child.kill(signal)
          })()
        },
      })
      assert.equal(result.code, code, result.stderr)
      assert.doesNotMatch(result.stderr, /cannot reach|^ERROR/m)
      const counts = JSON.parse(readFileSync(stats, 'utf8')) as Stats
      assertBalanced(counts)
      assert.equal(counts.left, counts.records)
    })
  }

  test('USR1 prints the progress line', async (t) => {
    const release = settleable<void>()
    const server = await serve(t, async (request, response) => {
      if (lastMessage(request) !== 'p1') await release.promise
      answerWell(request, response)
    })
    const args = [
      '--url',
      server.url,
      '--model',
      'm',
      '--total',
      '12',
      '-q',
      '--progress-every',
      '0',
    ]
    const result = await run('fanout-complete', args, {
      input: prompts(3),
      onStart: (child) => {
        child.stdout!.once('data', () => child.kill('SIGUSR1'))
        child.stderr!.once('data', () => release.resolve())
      },
    })
    assert.equal(result.code, 0, result.stderr)
    assert.match(
      result.stderr,
      /^Progress: 1\/12 \(0 errors\), \d+(\.\d)? req\/s, avg completion: 5 tokens, elapsed: \d+s(, .*)?\n$/,
    )
  })
})
