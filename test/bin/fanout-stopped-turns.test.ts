import assert from 'node:assert/strict'
import type { ChildProcess } from 'node:child_process'
import { readFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { assertBalanced, type Stats } from '../support/fanout.ts'
import { newFolder, type Result, run } from '../support/run.ts'
import {
  type ApiServer,
  answerWith,
  beginStream,
  delta,
  events,
  json,
  type Lifetime,
  lastMessage,
  type Seen,
  serve,
} from '../support/servers.ts'
import { settleable } from '../support/settleable.ts'

const CONVERSATIONS = Array.from(
  { length: 6 },
  (_, id) => `{"id":${id},"turns":["first","second"]}\n`,
)

interface Stopped extends Result {
  lines: string[]
  stats: Stats
  /** How often each turn was asked. */
  first: number
  second: number
}

/** What a server does with second turns. */
type SecondTurn = (request: Seen, response: ServerResponse) => void

/**
 * Asks six conversations of two turns, two at a time, and sends signals, the next one once the one
 * before it was reported and is quiet.
 *
 * @param ready when the first signal is sent
 */
async function stopped(
  t: Lifetime,
  signals: NodeJS.Signals[],
  args: string[],
  ready: (server: ApiServer) => boolean,
  second: SecondTurn,
): Promise<Stopped> {
  const server = await serve(t, (request, response) => {
    if (lastMessage(request) === 'second') return second(request, response)
    answerWith(request, response, 'one')
  })
  const stats = join(newFolder(), 'stats')
  let stderr = ''
  const drive = async (child: ChildProcess): Promise<void> => {
    child.stderr!.on('data', (chunk: Buffer) => {
      stderr += chunk.toString()
    })
    while (!ready(server)) await sleep(5)
    for (const signal of signals) {
      child.kill(signal)
      while (!stderr.includes('in flight') && child.exitCode === null) await sleep(5)
    }
  }
  const fixed = ['--url', server.url, '--model', 'm', '-c', '2', '--stats', stats]
  const result = await run('fanout-complete', [...fixed, ...args], {
    input: CONVERSATIONS.join(''),
    onStart: (child) => void drive(child),
  })
  const counts = JSON.parse(readFileSync(stats, 'utf8')) as Stats
  assertBalanced(counts)
  const asked = (text: string): number =>
    server.requests.filter((request) => lastMessage(request) === text).length
  const lines = result.stdout
    .toString()
    .split('\n')
    .filter((line) => line !== '')
  return { ...result, lines, stats: counts, first: asked('first'), second: asked('second') }
}

const secondTurns =
  (count: number) =>
  ({ requests }: ApiServer): boolean =>
    requests.filter((request) => lastMessage(request) === 'second').length >= count

describe('a signal between two turns', { concurrency: true }, () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    test(`${signal}: what has begun goes on to its last turn, nothing else begins`, async (t) => {
      const release = settleable<void>()
      let firsts = 0
      const server = await serve(t, async (request, response) => {
        if (lastMessage(request) === 'second') return answerWith(request, response, 'two')
        firsts++
        await release.promise
        answerWith(request, response, 'one')
      })
      let stderr = ''
      const result = await run(
        'fanout-complete',
        ['--url', server.url, '--model', 'm', '-c', '2'],
        {
          input: CONVERSATIONS.join(''),
          onStart: (child) => {
            child.stderr!.on('data', (chunk: Buffer) => {
              stderr += chunk.toString()
            })
            void (async () => {
              while (firsts < 2) await sleep(5)
              child.kill(signal)
              while (!stderr.includes('in flight')) await sleep(5)
              release.resolve()
            })()
          },
        },
      )
      assert.equal(result.code, signal === 'SIGINT' ? 130 : 143, result.stderr)
      assert.equal(result.stdout.toString().split('\n').length - 1, 2, result.stderr)
      assert.match(result.stderr, /no new requests; 2 in flight/)
      assert.equal(server.requests.length, 4)
    })
  }

  test('INT while a second turn waits to be asked again: it is', async (t) => {
    let failures = 0
    const result = await stopped(t, ['SIGINT'], [], secondTurns(2), (request, response) => {
      if (failures++ < 2) return json(response, { error: { message: 'busy' } }, 500)
      answerWith(request, response, 'two')
    })
    assert.equal(result.code, 130, result.stderr)
    assert.equal(result.lines.length, result.first, result.stderr)
    assert.equal(result.stats.answered, result.first)
  })

  for (const [signals, args] of [
    [['SIGINT', 'SIGINT'], []],
    [['SIGTERM'], ['--drain', '200ms']],
  ] as [NodeJS.Signals[], string[]][]) {
    test(`${signals.join(', ')} ${args.join(' ')}: what was paid for and is given up is told`, async (t) => {
      const result = await stopped(t, signals, args, secondTurns(2), (_request, response) => {
        beginStream(response).write(
          events(delta({ content: 'half' }), delta({ content: ' of it' })),
        )
      })
      assert.equal(result.code, signals[0] === 'SIGINT' ? 130 : 143, result.stderr)
      assert.deepEqual(result.lines, [])
      assert.equal(result.stats.left, result.stats.records)
      // Five tokens of each first turn and two pieces of the two second ones that were open.
      const { first, stats } = result
      assert.equal(stats.tokens.discarded, first * 5 + 2 * 2, result.stderr)
      const told = `${first} conversations were given up after ${first * 5} tokens of finished turns`
      assert.ok(result.stderr.includes(told), result.stderr)
    })
  }

  test('turns that wait a long time to be asked again are in flight, and a second INT ends them', async (t) => {
    const result = await stopped(
      t,
      ['SIGINT', 'SIGINT'],
      [],
      secondTurns(6),
      (_request, response) => {
        response.setHeader('retry-after', '3600')
        json(response, {}, 429)
      },
    )
    assert.equal(result.code, 130, result.stderr)
    assert.match(result.stderr, /no new requests; 6 in flight/)
    assert.match(result.stderr, /6 conversations were given up after 30 tokens/)
    assert.equal(result.stats.failed, 0)
    assert.equal(result.stats.left, 6)
  })
})
