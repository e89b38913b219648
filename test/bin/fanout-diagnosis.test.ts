import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createNetServer } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startSimulator } from '../../src/simulator/server.ts'
import { prompts, type Stats } from '../support/fanout.ts'
import { newFolder, type RunOptions, run } from '../support/run.ts'
import {
  answerWell,
  answerWith,
  beginStream,
  chat,
  delta,
  events,
  json,
  serve,
  serveTcp,
} from '../support/servers.ts'

const hasNginx = spawnSync('nginx', ['-v']).status === 0
/** nginx's default of 60 s in three seconds of wall time: what a busy machine adds stays small. */
const SPEED = 20

async function freePort(): Promise<number> {
  const server = createNetServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** nginx as people put it before vLLM, its read timeout scaled down from 60 s to 3 s. */
async function startNginx(folder: string, upstream: number): Promise<[ChildProcess, number]> {
  const port = await freePort()
  mkdirSync(join(folder, 'tmp'))
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
    .map((name) => `${name}_temp_path ${folder}/tmp/${name};`)
    .join('\n')
  writeFileSync(
    join(folder, 'nginx.conf'),
    `daemon off; master_process off; pid ${folder}/pid; error_log ${folder}/error.log;
     events {} http { access_log off; ${temp}
     server { listen 127.0.0.1:${port}; location / {
       proxy_pass http://127.0.0.1:${upstream}; proxy_read_timeout 3s; proxy_buffering off; } } }`,
  )
  const nginx = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], {
    stdio: 'ignore',
  })
  for (let tries = 0; tries < 100; tries++) {
    const reply = await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)
    if (reply?.ok) break
    await sleep(50)
  }
  return [nginx, port]
}

test('a proxy that cuts silent requests is named, with the age of the cuts', {
  skip: hasNginx ? false : 'nginx is not installed: NOT TESTED',
  timeout: 60_000,
}, async () => {
  // A server that is well and whose answers take longer than the proxy waits.
  const upstream = createServer((request, response) => {
    if (request.method === 'GET') response.end('{"data":[{"id":"m"}]}')
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => upstream.once('listening', resolve))
  const folder = newFolder()
  const [nginx, port] = await startNginx(folder, (upstream.address() as AddressInfo).port)
  try {
    const records = Array.from({ length: 8 }, (_, id) => JSON.stringify({ id, prompt: 'Why?' }))
    const result = await run(
      'fanout-complete',
      ['--clock-speed', String(SPEED), '--retries', '0', '--model', 'm'],
      {
        input: `${records.join('\n')}\n`,
        env: { OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1` },
      },
    )
    assert.equal(result.code, 1)
    const said = result.stderr.split('\n').filter((line) => line.includes('[proxy-cut]'))
    assert.equal(said.length, 1, result.stderr)
    assert.match(said[0] ?? '', /after about 6\d s of silence/)
    assert.match(said[0] ?? '', /nginx/)
    assert.match(said[0] ?? '', /--sse-keep-alive-interval/)
    assert.equal(result.stderr.match(/^ERROR sample /gm)?.length, 8)
  } finally {
    nginx.kill()
    upstream.closeAllConnections()
    upstream.close()
  }
})

/** Runs the executable, and gives the sentences of one diagnosis beside what else came of it. */
async function diagnosed(
  code: string,
  args: readonly string[],
  options: RunOptions,
): Promise<{ said: string[]; code: number | null; stderr: string; lines: number; stats: Stats }> {
  const stats = join(newFolder(), 'stats')
  const all = ['--model', 'm', '--stats', stats, ...args]
  const result = await run('fanout-complete', all, options)
  const { stderr, stdout } = result
  return {
    said: stderr.split('\n').filter((line) => line.endsWith(` [${code}]`)),
    code: result.code,
    stderr,
    lines: stdout.toString().split('\n').length - 1,
    stats: JSON.parse(readFileSync(stats, 'utf8')) as Stats,
  }
}

describe('one cause is said once, with what to do', { concurrency: 2 }, () => {
  test('many 429: --rpm, --tpm or a lower --concurrency', async (t) => {
    let open = 0
    const server = await serve(t, async (request, response) => {
      if (open >= 4) {
        response.setHeader('retry-after', '3')
        return json(response, { error: { message: 'slow down' } }, 429)
      }
      open++
      await sleep(10)
      open--
      answerWell(request, response)
    })
    const args = ['--url', server.url, '--clock-speed', '100', '--retries', '99', '-c', '16']
    const result = await diagnosed('rate-limited', args, { input: prompts(60) })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.lines, 60)
    assert.equal(result.said.length, 1, result.stderr)
    assert.match(result.said[0]!, /\d+ of \d+ requests were answered 429: .*--rpm or --tpm/)
  })

  test('resets on connections that were idle: nothing is spent, and why', async (t) => {
    const body = JSON.stringify(chat('4'))
    const head = 'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: '
    const url = await serveTcp(t, (socket) => {
      let answered = false
      socket.on('data', () => {
        if (answered) return socket.resetAndDestroy()
        answered = true
        socket.write(`${head}${body.length}\r\n\r\n${body}`)
      })
    })
    const args = ['--url', url, '--clock-speed', '50', '--retries', '0', '-c', '2']
    const result = await diagnosed('idle-close', args, { input: prompts(40) })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.lines, 40)
    assert.equal(result.said.length, 1, result.stderr)
    assert.match(result.said[0]!, /keeps idle connections for less than 4 s.*sent again/)
    assert.equal(result.stats.retries, 0)
  })

  test('too few file descriptors: the number that is needed, and no attempt is spent', async (t) => {
    const server = await serve(t, async (request, response) => {
      await sleep(50)
      answerWell(request, response)
    })
    const args = ['--url', server.url, '--clock-speed', '50', '--retries', '0', '-c', '128']
    const result = await diagnosed('descriptors', args, {
      input: prompts(200),
      shell: 'ulimit -n 64; exec "$0" "$@"',
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.lines, 200)
    assert.equal(result.said.length, 1, result.stderr)
    assert.match(result.said[0]!, /ulimit -n, LimitNOFILE= of systemd\) to 192, or/)
    assert.ok(result.stats.retries_by_code.descriptors! > 0)
    assert.equal(result.stats.failed, 0)
  })

  test('a queue that others fill: requests wait, are not timed out, and the metric is named', async () => {
    const simulator = await startSimulator({ speed: 100, maxNumSeqs: 4, lengthSigma: 0 })
    const others = Array.from({ length: 4 }, () => ask(`${simulator.url}/v1/chat/completions`))
    try {
      const streams = await Promise.all(others)
      const args = ['--url', `${simulator.url}/v1`, '--clock-speed', '100', '-c', '2']
      const own = ['--model', 'simulated', '--max-tokens', '5']
      const result = await diagnosed('queued-by-others', [...args, ...own], {
        input: prompts(2),
        onStart: (child) => {
          child.stderr!.on('data', (chunk: Buffer) => {
            if (!chunk.includes('[queued-by-others]')) return
            for (const stream of streams) stream.destroy()
          })
        },
      })
      assert.equal(result.code, 0, result.stderr)
      assert.equal(result.lines, 2)
      assert.equal(result.said.length, 1, result.stderr)
      assert.match(result.said[0]!, /all 2 open requests .* first token.*num_requests_waiting/)
    } finally {
      await simulator.close()
    }
  })

  test('a server that is faster than we are: this process is the bottleneck', async (t) => {
    const flood = Buffer.from(events(delta({ content: 'a' })).repeat(2000))
    const server = await serve(t, (_request, response, nth) => {
      beginStream(response)
      const pump = (): void => {
        while (!response.destroyed && nth >= 0 && !told) if (!response.write(flood)) return
        if (!response.writableEnded) response.end(events(delta({}, 'stop')))
      }
      response.on('drain', pump)
      pump()
    })
    let told = false
    const args = ['--url', server.url, '--clock-speed', '50', '-c', '4', '--max-answer', '8G']
    const result = await diagnosed('client-busy', args, {
      input: prompts(4),
      onStart: (child) => {
        child.stderr!.on('data', (chunk: Buffer) => {
          told ||= chunk.includes('[client-busy]')
        })
      },
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.lines, 4)
    assert.equal(result.said.length, 1, result.stderr)
    assert.match(result.said[0]!, /bottleneck, not the server.*two of them/)
  })

  test('a reader of our output that is slow, also of small answers', async (t) => {
    const server = await serve(t, (request, response) => {
      answerWith(request, response, 'x'.repeat(2000))
    })
    const args = ['--url', server.url, '--clock-speed', '50', '-c', '32']
    const result = await diagnosed('slow-output', args, {
      input: prompts(400),
      onStart: (child) => {
        child.stdout!.pause()
        child.stderr!.on('data', (chunk: Buffer) => {
          if (chunk.includes('[slow-output]')) child.stdout!.resume()
        })
      },
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.lines, 400)
    assert.equal(result.said.length, 1, result.stderr)
    assert.match(result.said[0]!, /reader of our output, is the bottleneck.*-o/)
    assert.equal(result.stats.retries, 0)
  })
})

/** Asks for a long answer, and keeps the stream open. */
function ask(url: string): Promise<IncomingMessage> {
  const body = { model: 'simulated', stream: true, max_tokens: 8000, ignore_eos: true }
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json' }
    const sent = request(url, { method: 'POST', headers }, (response) => {
      response.on('error', () => {})
      response.once('data', () => resolve(response))
    })
    sent.on('error', reject)
    sent.end(JSON.stringify({ ...body, messages: [{ role: 'user', content: 'Why?' }] }))
  })
}
