import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { get } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import { SERVER_PROFILES } from '../../src/simulator/profiles.ts'
import { executable, newFolder, run } from '../support/run.ts'
import type { Lifetime } from '../support/servers.ts'

interface Served {
  url: string
  end(signal: NodeJS.Signals): Promise<{ code: number; stderr: string }>
}

/** Starts the binary and waits for the URL that it prints. */
async function served(t: Lifetime, args: string[]): Promise<Served> {
  const child: ChildProcess = spawn(process.execPath, [
    executable('simulate-server'),
    '--port',
    '0',
    ...args,
  ])
  t.after(async () => void child.kill('SIGKILL'))
  let stderr = ''
  child.stderr!.on('data', (chunk: Buffer) => {
    stderr += chunk.toString()
  })
  const [chunk] = (await once(child.stdout!, 'data')) as [Buffer]
  const printed = chunk.toString()
  assert.match(printed, /^http:\/\/127\.0\.0\.1:\d+\/v1\n$/)
  return {
    url: printed.trim(),
    end: async (signal) => {
      child.kill(signal)
      const [code] = (await once(child, 'close')) as [number]
      return { code, stderr }
    },
  }
}

describe('simulate-server', { concurrency: true }, () => {
  test('serves what a client asks, and counts it', async (t) => {
    const folder = newFolder()
    const key = join(folder, 'key')
    const stats = join(folder, 'stats')
    writeFileSync(key, 'k-123\n')
    const server = await served(t, [
      '--speed',
      '200',
      // A client must not meet connections that are just being closed.
      '--keep-alive',
      '1h',
      '--model',
      'mine',
      '--mean-tokens',
      '20',
      '--api-key-file',
      key,
      '--stats',
      stats,
      '--seed',
      '3',
    ])
    const headers = { authorization: 'Bearer k-123', 'content-type': 'application/json' }
    const root = server.url.replace('/v1', '')
    assert.equal((await fetch(`${root}/health`)).status, 200)
    assert.equal((await fetch(`${server.url}/models`)).status, 401)
    const models = (await (await fetch(`${server.url}/models`, { headers })).json()) as {
      data: { id: string }[]
    }
    assert.deepEqual(
      models.data.map(({ id }) => id),
      ['mine'],
    )
    const ask = async (path: string, body: object): Promise<string> => {
      const reply = await fetch(server.url + path, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      })
      return reply.text()
    }
    const messages = [{ role: 'user', content: 'hello' }]
    const chat = JSON.parse(await ask('/chat/completions', { messages })) as {
      choices: { message: { content: string }; finish_reason: string }[]
    }
    assert.equal(chat.choices[0]!.finish_reason, 'stop')
    const again = JSON.parse(await ask('/chat/completions', { messages })) as typeof chat
    assert.deepEqual(again.choices[0], chat.choices[0])
    const text = JSON.parse(await ask('/completions', { prompt: 'hello' })) as {
      choices: { text: string }[]
    }
    assert.equal(typeof text.choices[0]!.text, 'string')
    const stream = await ask('/chat/completions', {
      messages,
      stream: true,
      stream_options: { include_usage: true },
    })
    assert.ok(stream.endsWith('data: [DONE]\n\n'))
    const unknown = await fetch(`${server.url}/chat/completions`, {
      method: 'POST',
      headers,
      body: JSON.stringify({ model: 'other', messages }),
    })
    assert.equal(unknown.status, 404)
    assert.match(await (await fetch(`${root}/metrics`)).text(), /^vllm:num_requests_running/m)
    const counts = (await (await fetch(`${root}/stats`)).json()) as {
      requests: { completed: number }
    }
    assert.equal(counts.requests.completed, 4)
    const { code } = await server.end('SIGTERM')
    assert.equal(code, 143)
    const written = JSON.parse(readFileSync(stats, 'utf8')) as {
      requests: { completed: number; refused: number }
    }
    assert.equal(written.requests.completed, 4)
    assert.equal(written.requests.refused, 1)
  })

  test('ends by INT and HUP with their codes, also with requests open', async (t) => {
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGHUP', 129],
    ] as const) {
      const server = await served(t, ['--fault', 'hang:100%'])
      const pending = fetch(`${server.url}/completions`, {
        method: 'POST',
        body: '{"prompt":"x"}',
        headers: { 'content-type': 'application/json' },
      }).catch((error: Error) => error)
      const root = server.url.replace('/v1', '')
      for (;;) {
        const { requests } = (await (await fetch(`${root}/stats`)).json()) as {
          requests: { open: number }
        }
        if (requests.open === 1) break
      }
      assert.equal((await server.end(signal)).code, code)
      assert.ok((await pending) instanceof Error)
    }
  })

  test('faults and outages by name', async (t) => {
    const server = await served(t, ['--fault', '503:100%', '--outage', '1h+1h', '-q'])
    const reply = await fetch(`${server.url}/completions`, {
      method: 'POST',
      body: '{"prompt":"x"}',
      headers: { 'content-type': 'application/json' },
    })
    assert.equal(reply.status, 503)
    const { code, stderr } = await server.end('SIGINT')
    assert.deepEqual([code, stderr], [130, ''])
  })

  test('what is wrong is one line, exit 2', async (t) => {
    const busy = await served(t, [])
    const port = new URL(busy.url).port
    const wrong: [string[], RegExp][] = [
      [['--fault', 'nope:2%'], /nope/],
      [['--fault', '503'], /503/],
      [['--fault', '503:200%'], /200%/],
      [['--outage', 'x'], /x/],
      [['--port', 'abc'], /--port/],
      [['--port', '70000'], /--port/],
      [['--speed', '0'], /--speed/],
      [['--reasoning-share', '2'], /--reasoning-share/],
      [['--max-num-seqs', '0'], /--max-num-seqs/],
      [['--half-batch', '-1'], /--half-batch/],
      [['--kv-cache-tokens', '0'], /--kv-cache-tokens/],
      [['--peak-tokens-per-second', '0'], /--peak-tokens-per-second/],
      [['--prefill-tokens-per-second', '-5'], /--prefill-tokens-per-second/],
      [['--profile', 'story', '--peak-tokens-per-second', '-1'], /--peak-tokens-per-second/],
      [['--profile', 'nope'], /--profile must be one of story, .*rtx4090-7b.*, got 'nope'/],
      [['--profile', 'constructor'], /got 'constructor'/],
      [['--port', port], /taken/],
      [['foo', 'bar'], /unexpected operand 'foo'/],
      [['--', '-'], /unexpected operand '-'/],
      [['--api-key-file', '/no/such'], /no such file/],
    ]
    await Promise.all(
      wrong.map(async ([args, words]) => {
        const result = await run(
          'simulate-server',
          args.includes('--port') ? args : ['--port', '0', ...args],
        )
        assert.equal(result.code, 2, `${args.join(' ')}: ${result.stderr}`)
        assert.match(result.stderr, words)
        assert.match(result.stderr, /^simulate-server: [^\n]*\n$/)
      }),
    )
    await busy.end('SIGTERM')
    const help = await run('simulate-server', ['--help'])
    assert.match(
      help.stdout.toString(),
      /^simulate-server: [\s\S]*Examples:[\s\S]*Server:[\s\S]*Scheduler:[\s\S]*Answers:[\s\S]*Faults:/,
    )
    for (const name of Object.keys(SERVER_PROFILES)) {
      assert.match(help.stdout.toString(), new RegExp(`^ +${name} `, 'm'))
    }
  })

  test('a profile is a server, and explicit options override it', async (t) => {
    const most = async (...args: string[]): Promise<number> => {
      const server = await served(t, ['--profile', 'llama-cpp', '--speed', '100', ...args])
      const ask = (index: number): Promise<unknown> =>
        fetch(`${server.url}/completions`, {
          method: 'POST',
          body: `{"prompt":"${index}","max_tokens":50,"ignore_eos":true}`,
          headers: { 'content-type': 'application/json' },
        }).then((reply) => reply.text())
      await Promise.all(Array.from({ length: 12 }, (_, index) => ask(index)))
      const stats = await new Promise<string>((resolve, reject) => {
        // A connection of its own: one that was kept may be closed just when it is used again.
        const options = { agent: false, timeout: 60_000 }
        get(server.url.replace('/v1', '/stats'), options, (reply) =>
          text(reply).then(resolve, reject),
        ).on('error', reject)
      })
      return (JSON.parse(stats) as { scheduler: { peak_running: number } }).scheduler.peak_running
    }
    assert.deepEqual([await most(), await most('--max-num-seqs', '6')], [4, 6])
  })
})
