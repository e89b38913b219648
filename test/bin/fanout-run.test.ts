import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startSimulator } from '../../src/simulator/server.ts'
import { assertBalanced, fanout, linesOf, prompts, type Stats } from '../support/fanout.ts'
import { newFolder, run } from '../support/run.ts'
import { answerWell, json, lastMessage, serve } from '../support/servers.ts'
import { settleable } from '../support/settleable.ts'

const MODEL = ['--model', 'm']

type Percentiles = Record<'p50' | 'p90' | 'p99' | 'mean', number>

describe('how a run goes', { concurrency: true }, () => {
  test('-c is never exceeded, and reached', async (t) => {
    const simulator = await startSimulator({
      speed: 200,
      meanTokens: 40,
      faults: ['503:10%', 'reset:5%'],
    })
    t.after(() => simulator.close())
    for (const most of [1, 7]) {
      const run = await fanout(`${simulator.url}/v1`, ['-c', String(most)], { input: prompts(60) })
      assert.ok(run.code <= 1, run.stderr)
      const { peak } = simulator.stats().requests
      assert.ok(peak <= most, `${peak} at once`)
      assert.equal(peak, most)
    }
  })

  test('a huge input is not read ahead', async (t) => {
    const release = settleable<void>()
    const server = await serve(t, async (request, response) => {
      await release.promise
      answerWell(request, response)
    })
    let given = 0
    const source = async function* (): AsyncGenerator<Buffer, void, void> {
      for (; given < 3000; given++) {
        const pad = 'x'.repeat(20_000)
        yield Buffer.from(`{"id":${given},"prompt":"p","pad":"${pad}"}\n`)
      }
    }
    const running = fanout(server.url, [...MODEL, '-c', '4'], { input: Readable.from(source()) })
    let before = -1
    // Until nothing more is taken for a while.
    while (server.requests.length < 4 || given !== before) {
      before = given
      await sleep(300)
    }
    // Sixteen records and what pipes and blocks of 256 KiB hold on the way.
    assert.ok(given < 250, `${given} records were read for 4 requests`)
    release.resolve()
    const result = await running
    assert.equal(result.stats.answered, 3000)
  })

  test('--keep-order: the order of the input, with bounded reading behind a slow first', async (t) => {
    const release = settleable<void>()
    const server = await serve(t, async (request, response) => {
      if (lastMessage(request) === 'p1') await release.promise
      if (lastMessage(request) === 'p5') return json(response, {}, 400)
      answerWell(request, response)
    })
    const running = fanout(server.url, [...MODEL, '-c', '4', '--keep-order'], {
      input: prompts(200),
    })
    let before = -1
    while (server.requests.length < 4 || server.requests.length !== before) {
      before = server.requests.length
      await sleep(200)
    }
    assert.ok(before < 100, `${before} asked behind a slow one`)
    release.resolve()
    const result = await running
    assert.equal(result.code, 1)
    const ids = Array.from({ length: 200 }, (_, i) => i + 1).filter((id) => id !== 5)
    assert.deepEqual(
      result.records.map(({ id }) => id),
      ids,
    )
  })

  test('--halt-on-failures by number and by share', async (t) => {
    const server = await serve(t, (request, response) => {
      if (Number(lastMessage(request).slice(1)) % 2 === 0) return json(response, {}, 400)
      answerWell(request, response)
    })
    const byNumber = await fanout(server.url, [...MODEL, '-c', '2', '--halt-on-failures', '3'], {
      input: prompts(200),
    })
    assert.equal(byNumber.code, 1, byNumber.stderr)
    assert.ok(byNumber.stats.failed >= 3 && byNumber.stats.failed <= 6)
    assert.match(byNumber.stderr, /--halt-on-failures/)
    const byShare = await fanout(server.url, [...MODEL, '-c', '2', '--halt-on-failures', '40%'], {
      input: prompts(200),
    })
    assert.equal(byShare.code, 1)
    assert.ok(byShare.stats.answered + byShare.stats.failed < 100)
    const enough = await fanout(server.url, [...MODEL, '--halt-on-failures', '60%'], {
      input: prompts(60),
    })
    assert.equal(enough.stats.answered, 30)
    assert.equal(enough.stats.failed, 30)
  })

  test('--stats balances under faults of every kind', async (t) => {
    const faults = [
      '503:4%',
      '429:4%',
      '400:2%',
      'reset:4%',
      'cut:4%',
      'garbage:3%',
      'html:3%',
      'in-band-error:4%',
      'no-done:4%',
      'empty:3%',
      'abort:3%',
      'no-finish:3%',
      'no-choices:3%',
      'stall:3%',
      'hang:3%',
    ]
    const simulator = await startSimulator({ speed: 100, meanTokens: 60, faults, faultSeed: 7 })
    t.after(() => simulator.close())
    const budgets = ['--idle-timeout', '30s', '--first-token-timeout', '60s', '--retries', '3']
    const result = await fanout(`${simulator.url}/v1`, ['-c', '32', ...budgets], {
      input: `${prompts(300)}no json\n\n`,
    })
    assert.equal(result.code, 1)
    const { stats, lines, failures } = result
    assert.equal(stats.records, 301)
    assert.equal(stats.answered, lines.length)
    assert.equal(stats.failed, failures.length)
    const sum = (counts: Record<string, number>): number =>
      Object.values(counts).reduce((a, b) => a + b, 0)
    assert.equal(sum(stats.failed_by_code), stats.failed)
    assert.equal(sum(stats.retries_by_code), stats.retries)
    const tokens = result.records.reduce(
      (all, { usage }) => all + (usage?.completion_tokens ?? 0),
      0,
    )
    assert.equal(stats.tokens.completion, tokens)
    assert.equal(new Set(result.records.map(({ id }) => id)).size, lines.length)
  })

  test('--stats: percentiles of latency and first token, without the time in our own queue', async (t) => {
    const server = await serve(t, async (request, response) => {
      await sleep(30)
      answerWell(request, response)
    })
    const stats = join(newFolder(), 'stats')
    const began = performance.now()
    const args = ['--url', server.url, '--model', 'm', '-c', '1', '--stats', stats]
    const result = await run('fanout-complete', args, { input: prompts(12) })
    const elapsed = performance.now() - began
    assert.equal(result.code, 0, result.stderr)
    const counts = JSON.parse(readFileSync(stats, 'utf8')) as Record<string, Percentiles>
    for (const name of ['latency_ms', 'first_token_ms']) {
      const { p50, p90, p99, mean } = counts[name]!
      assert.ok(p50 > 0 && p50 <= p90 && p90 <= p99, name)
      // One after the other: with the time in the queue they would add up to several times the run.
      assert.ok(12 * mean <= elapsed, `12 times ${mean} in ${elapsed}`)
    }
  })

  test('progress lines, --total, -q and --stats -', async (t) => {
    const server = await serve(t, (request, response) => {
      if (lastMessage(request) === 'p2') return json(response, {}, 400)
      setTimeout(() => answerWell(request, response), 100)
    })
    const args = ['--url', server.url, ...MODEL, '-c', '1', '--clock-speed', '50']
    const loud = await run(
      'fanout-complete',
      [...args, '--progress-every', '1s', '--total', '50', '--stats', '-'],
      { input: prompts(4) },
    )
    assert.equal(loud.code, 1)
    const form =
      /^Progress: \d+\/50 \(\d+ errors\), \d+\.\d req\/s, avg completion: \d+ tokens, elapsed: \d+s(, .*)?$/
    const progress = loud.stderr.split('\n').filter((line) => line.startsWith('Progress'))
    assert.ok(progress.length >= 2 && progress.every((line) => form.test(line)), loud.stderr)
    assert.match(loud.stderr, /^fanout-complete: 4 records: 3 answered, 1 failed/m)
    const counts = JSON.parse(
      loud.stderr.split('\n').find((line) => line.startsWith('{'))!,
    ) as Stats
    assert.deepEqual([counts.records, counts.answered, counts.failed], [4, 3, 1])

    const quiet = await run('fanout-complete', [...args, '-q', '--progress-every', '1s'], {
      input: prompts(4),
    })
    assert.match(quiet.stderr, /^ERROR sample 2: HTTP 400: \{\} \(attempt 1 of 1\)\n$/)

    const file = join(newFolder(), 'q.jsonl')
    writeFileSync(file, prompts(4))
    const counted = await run('fanout-complete', [...args, '--progress-every', '1s', file])
    assert.match(counted.stderr, /^Progress: \d\/4 /m)
  })

  test('a line is written as soon as it is there', async (t) => {
    const release = settleable<void>()
    const server = await serve(t, async (request, response) => {
      if (lastMessage(request) === 'p2') await release.promise
      answerWell(request, response)
    })
    const result = await run(
      'fanout-complete',
      ['--url', server.url, ...MODEL, '--line-buffered'],
      {
        input: prompts(2),
        onStart: (child) => child.stdout!.once('data', () => release.resolve()),
      },
    )
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.stdout.toString().trim().split('\n').length, 2)
  })
})

describe('the command line', { concurrency: true }, () => {
  test('what is wrong is one line, exit 2, naming the option', async () => {
    const wrong: [string[], RegExp][] = [
      [['--n', '2'], /extract-prompts --samples/],
      [['--param', 'n=2'], /extract-prompts --samples/],
      [['--param', 'messages=[]'], /--param messages cannot be.*record/],
      [['--param', 'messages.x=1'], /--param messages cannot be.*record/],
      [['--param', 'prompt="x"'], /--param prompt cannot be.*--prompt-field/],
      [['--param', 'input="x"'], /--param input cannot be.*record/],
      [['--param', 'stream=false'], /--param stream cannot be.*--no-stream/],
      [['--param', 'stream_options={}'], /--param stream_options cannot be.*--no-stream/],
      [['--param', 'model="x"'], /--param model cannot be.*--model/],
      [['--send', 'tools,messages'], /--send messages cannot be/],
      [['--param', 'max_tokens=7', '--max-tokens', '9'], /--max-tokens and --param max_tokens/],
      [['--param', 'top_p=1', '--top-p', '1'], /--top-p and --param top_p/],
      [
        ['--param', 'return_token_ids=false', '--return-token-ids'],
        /--return-token-ids and --param return_token_ids/,
      ],
      [['--param', 'x=abc'], /--param x.*JSON/],
      [['--param', 'x'], /--param/],
      [['-c', 'abc'], /--concurrency/],
      [['-c', '0'], /--concurrency/],
      [['-c', '-1'], /--concurrency/],
      [['-c5x'], /--concurrency/],
      [['-c', '1e3'], /--concurrency/],
      [['--temperature', '1,5'], /--temperature/],
      [['--temperature', 'NaN'], /--temperature/],
      [['--retries', '1.5'], /--retries/],
      [['--idle-timeout', '5x'], /--idle-timeout/],
      [['--idle-timeout', '-5'], /--idle-timeout/],
      [['--timeout', ''], /--timeout/],
      [['--clock-speed', '0'], /--clock-speed/],
      [['--halt-on-failures', 'many'], /--halt-on-failures/],
      [['--endpoint', 'embeddings'], /--endpoint/],
      [['--on-length', 'drop'], /--on-length/],
      [['--url', 'ftp://x/'], /--url/],
      [['--url', 'no url'], /--url/],
      [['--url', 'http://me:hunter2@x/'], /--url/],
      [['--no-such-option'], /unknown option --no-such-option \(/],
      [['--streams'], /unknown option --streams \(/],
      [['--timeouts'], /unknown option --timeouts; did you mean --timeout\?/],
      [['-Z'], /-Z/],
      [['--max-tokens'], /--max-tokens/],
      [['--resume=yes'], /--resume/],
      [['--header', 'Authorization: Bearer x'], /--header-file/],
      [['--api-key-file', '/no/such/file'], /no such file/],
      [['--resume', '--overwrite', '-o', '/tmp/no-such-dir/x'], /--overwrite|--resume/],
      [['--resume'], /--resume/],
    ]
    for (const [args, words] of wrong) {
      const result = await fanout('http://127.0.0.1:9/v1', [...MODEL, ...args], {
        input: prompts(1),
      })
      assert.equal(result.code, 2, `${args.join(' ')}: ${result.stderr}`)
      assert.match(result.stderr, words)
      assert.match(result.stderr, /^fanout-complete: [^\n]*\n$/, args.join(' '))
      assert.doesNotMatch(result.stderr, /hunter2/)
    }
  })

  test('--help: summary, examples, options by group; --version; --completion', async () => {
    const help = await run('fanout-complete', ['--help', '--no-such'])
    assert.equal(help.code, 0)
    const text = help.stdout.toString()
    const places = [
      /^fanout-complete: /m,
      /^Examples:/m,
      /^Server:/m,
      /^Requests:/m,
      /^Sampling:/m,
      /^Pace:/m,
      /^Output:/m,
      /^Codes of failures:/m,
    ].map((part) => text.search(part))
    assert.ok(
      places.every((place) => place >= 0),
      String(places),
    )
    assert.deepEqual(
      places,
      [...places].sort((a, b) => a - b),
    )
    assert.equal(places[0], 0)
    for (const code of ['refused', 'first-token-timeout', 'no-finish', 'in-band-error'])
      assert.ok(text.includes(code))
    assert.equal(help.stderr, '')
    const version = await run('fanout-complete', ['--version'])
    assert.match(
      version.stdout.toString(),
      /^fanout-complete \(completion-pipes\) \d+\.\d+\.\d+\n$/,
    )
    for (const shell of ['bash', 'zsh', 'fish']) {
      const script = await run('fanout-complete', ['--completion', shell])
      assert.equal(script.code, 0)
      assert.ok(script.stdout.includes('idle-timeout'))
    }
    const other = await run('fanout-complete', ['--completion', 'csh'])
    assert.equal(other.code, 2)
  })

  test('$OPENAI_BASE_URL is the default of --url', async (t) => {
    const server = await serve(t, answerWell)
    const result = await run('fanout-complete', MODEL, {
      input: prompts(1),
      env: { OPENAI_BASE_URL: server.url },
    })
    assert.equal(result.code, 0, result.stderr)
    assert.deepEqual(linesOf('/no/such/file'), [])
  })
})

describe('a closed pipe', () => {
  for (const order of [[], ['--keep-order']]) {
    test(`ends it quietly, --stats is written ${order.join()}`, async (t) => {
      const server = await serve(t, answerWell)
      const stats = join(newFolder(), 'stats')
      const args = ['--url', server.url, ...MODEL, '-c', '4', '--stats', stats, ...order]
      const result = await run('fanout-complete', args, {
        input: prompts(300),
        shell: '"$0" "$@" | head -n 3 >&2; exit 0',
      })
      assert.deepEqual(result.stderr.match(/^(?!\{"id").*$/gm), [''])
      const counts = JSON.parse(readFileSync(stats, 'utf8')) as Stats
      assertBalanced(counts)
      assert.ok(counts.answered >= 3)
    })
  }

  test('is exit 0', async (t) => {
    const server = await serve(t, answerWell)
    const result = await run('fanout-complete', ['--url', server.url, ...MODEL, '-c', '4'], {
      input: prompts(300),
      onStart: (child) => child.stdout!.once('data', () => child.stdout!.destroy()),
    })
    assert.deepEqual([result.code, result.stderr], [0, ''])
  })
})
