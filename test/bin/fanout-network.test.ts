import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import {
  createServer,
  request as httpRequest,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const hasOpenssl = spawnSync('openssl', ['version']).status === 0

const answer: RequestListener = (request, response) => {
  request.resume()
  request.on('end', () => {
    response.setHeader('content-type', 'application/json')
    if (request.method === 'GET') response.end('{"data":[{"id":"m"}]}')
    else {
      response.end(
        '{"model":"m","choices":[{"message":{"content":"yes"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}',
      )
    }
  })
}

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

function records(count: number): string {
  const lines = Array.from({ length: count }, (_, id) => JSON.stringify({ id, prompt: `q${id}` }))
  return `${lines.join('\n')}\n`
}

test('a private authority is trusted when it is given, and no other is', {
  skip: hasOpenssl ? false : 'openssl is not installed: NOT TESTED',
}, async () => {
  const folder = newFolder()
  const args =
    'req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1'
  const made = spawnSync('openssl', [...args.split(' '), '-keyout', 'key.pem', '-out', 'ca.pem'], {
    cwd: folder,
  })
  assert.equal(made.status, 0, String(made.stderr))
  const key = readFileSync(join(folder, 'key.pem'))
  const cert = readFileSync(join(folder, 'ca.pem'))
  const server = createTlsServer({ key, cert }, answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  try {
    const trusting = await run('fanout-complete', ['--url', url, '--ca-file', 'ca.pem'], {
      cwd: folder,
      input: records(3),
    })
    assert.equal(trusting.code, 0, trusting.stderr)
    assert.equal(trusting.stdout.toString().trimEnd().split('\n').length, 3)
    const wary = await run('fanout-complete', ['--url', url], { cwd: folder, input: records(3) })
    assert.equal(wary.code, 2)
    assert.match(wary.stderr, /cannot reach the server.*certificate.*--ca-file/)
    assert.equal(wary.stdout.length, 0)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('HTTP_PROXY and NO_PROXY are honoured', async () => {
  const server = createServer(answer)
  const port = await listening(server)
  let proxied = 0
  const proxy = createServer((request, response) => {
    proxied++
    const { pathname, host } = new URL(request.url ?? '')
    const [hostname, target] = host.split(':')
    const { method, headers } = request
    const onward = httpRequest(
      { hostname, port: target, path: pathname, method, headers },
      (reply) => {
        response.writeHead(reply.statusCode ?? 502, reply.headers)
        reply.pipe(response)
      },
    )
    request.pipe(onward)
  })
  proxy.on('connect', (request, client) => {
    proxied++
    const [hostname, target] = (request.url ?? '').split(':')
    const onward = connect(Number(target), hostname, () => {
      client.write('HTTP/1.1 200 OK\r\n\r\n')
      onward.pipe(client)
      client.pipe(onward)
    })
    onward.on('error', () => client.destroy())
    client.on('error', () => onward.destroy())
  })
  const proxyUrl = `http://127.0.0.1:${await listening(proxy)}`
  const ask = (env: Record<string, string>): ReturnType<typeof run> =>
    run('fanout-complete', ['--url', `http://127.0.0.1:${port}/v1`], { input: records(3), env })
  try {
    const through = await ask({ HTTP_PROXY: proxyUrl, NO_PROXY: '' })
    assert.equal(through.code, 0, through.stderr)
    assert.ok(proxied >= 3, `${proxied} requests came through the proxy`)
    proxied = 0
    const direct = await ask({ HTTP_PROXY: proxyUrl, NO_PROXY: '127.0.0.1' })
    assert.equal(direct.code, 0, direct.stderr)
    assert.equal(proxied, 0)
    // As curl takes it, too.
    const bare = await ask({ HTTP_PROXY: proxyUrl.slice('http://'.length), NO_PROXY: '' })
    assert.equal(bare.code, 0, bare.stderr)
    assert.ok(proxied >= 3, `${proxied} requests came through the proxy`)
    const wrong = await ask({ https_proxy: 'socks5://127.0.0.1:9' })
    assert.equal(wrong.code, 2)
    assert.match(wrong.stderr, /\$https_proxy names no http or https proxy/)
  } finally {
    for (const each of [server, proxy]) {
      each.closeAllConnections()
      each.close()
    }
  }
})

interface Limited {
  name: string
  args: string[]
  input?: string
  reply?: (response: ServerResponse) => void
  said?: RegExp
}

const NO_USAGE =
  /warning: replies do not tell what they cost \(usage\): --tpm counts .* \[no-usage\]/
const YES = '{"choices":[{"message":{"content":"yes"},"finish_reason":"stop"}]}'

/** A batch line for each record. */
function batchLines(count: number): string {
  const body = '{"model":"m","messages":[{"role":"user","content":"q"}]}'
  const line = (id: number): string =>
    `{"custom_id":"${id}","method":"POST","url":"/v1/chat/completions","body":${body}}\n`
  return Array.from({ length: count }, (_, id) => line(id)).join('')
}

function streamOf(response: ServerResponse, pieces: number): void {
  response.setHeader('content-type', 'text/event-stream')
  for (let piece = 0; piece < pieces; piece++) {
    response.write('data: {"choices":[{"delta":{"content":"long word"}}]}\n\n')
  }
  response.end('data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n')
}

/**
 * Five a minute by their number; an answer costs three tokens, so that 15 are five as well. Where none
 * are told, a prompt is one token, and so is `yes`.
 */
const LIMITS: Limited[] = [
  { name: 'requests', args: ['--rpm', '5'] },
  { name: 'tokens', args: ['--tpm', '15'] },
  { name: 'tokens of batch lines', args: ['--tpm', '15'], input: batchLines(16) },
  {
    name: 'tokens without a total',
    args: ['--tpm', '15'],
    reply: (response) => {
      const usage = '"usage":{"prompt_tokens":1,"completion_tokens":2}'
      response.end(YES.replace(/}$/, `,${usage}}`))
    },
  },
  {
    name: 'bytes without usage',
    args: ['--tpm', '10', '-c', '2'],
    reply: (response) => void response.end(YES),
    said: NO_USAGE,
  },
  {
    name: 'bytes of batch lines without usage',
    args: ['--tpm', '10', '-c', '2'],
    input: batchLines(16),
    reply: (response) => void response.end(YES),
    said: NO_USAGE,
  },
  {
    name: 'pieces of streams without usage',
    args: ['--tpm', '25', '-c', '2'],
    reply: (response) => streamOf(response, 4),
    said: NO_USAGE,
  },
]

for (const { name, args: limit, input = records(16), reply, said } of LIMITS) {
  test(`${limit[0]} holds over any minute by ${name}, and what is over it waits`, async () => {
    const arrivals: number[] = []
    const server = createServer((request, response) => {
      if (request.method === 'POST') arrivals.push(performance.now())
      if (reply === undefined || request.method === 'GET') answer(request, response)
      else request.resume().on('end', () => reply(response))
    })
    const url = `http://127.0.0.1:${await listening(server)}/v1`
    const speed = 300
    try {
      const args = ['--url', url, ...limit, '--clock-speed', String(speed)]
      const result = await run('fanout-complete', args, { input })
      assert.equal(result.code, 0, result.stderr)
      assert.equal(arrivals.length, 16)
      // Sixteen at five a minute need more than three minutes of server time; arriving may take some.
      const span = arrivals.at(-1)! - arrivals[0]!
      assert.ok(span >= (2.7 * 60_000) / speed, `all were sent within ${span} ms`)
      assert.equal(result.stderr.match(/no-usage/g)?.length, said && 1)
      if (said !== undefined) assert.match(result.stderr, said)
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
}

test('--retry-budget: retries beyond it wait, and no sample is given up', async () => {
  const retries: number[] = []
  const seen = new Set<string>()
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      if (request.method === 'GET') return response.end('{"data":[{"id":"m"}]}')
      if (!seen.has(body)) {
        seen.add(body)
        response.statusCode = 500
        return response.end('{"error":{"message":"sick"}}')
      }
      retries.push(performance.now())
      return response.end(
        '{"model":"m","choices":[{"message":{"content":"y"},"finish_reason":"stop"}]}',
      )
    })
  })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  const speed = 50
  try {
    const args = ['--url', url, '--retry-budget', '10%', '--clock-speed', String(speed)]
    const result = await run('fanout-complete', args, { input: records(60) })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(retries.length, 60)
    // A tenth of sixty may go at once; the other 54 go one a second of server time.
    const span = retries.at(-1)! - retries[0]!
    assert.ok(span >= (50 * 1000) / speed, `all were asked again within ${span} ms`)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('TCP keep-alive is on for the connections', {
  skip: process.platform === 'linux' ? false : 'reads /proc/net/tcp: NOT TESTED',
}, async () => {
  const timers: string[] = []
  const server = createServer((request, response) => {
    if (request.method === 'POST') {
      const port = request.socket.remotePort!.toString(16).toUpperCase().padStart(4, '0')
      const line = readFileSync('/proc/net/tcp', 'utf8')
        .split('\n')
        .find((text) => text.trim().split(/\s+/)[1]?.endsWith(`:${port}`))
      // Column "tr": 02 is the keep-alive timer.
      timers.push(line?.trim().split(/\s+/)[5]?.slice(0, 2) ?? 'no such connection')
    }
    answer(request, response)
  })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  try {
    const result = await run('fanout-complete', ['--url', url], { input: records(1) })
    assert.equal(result.code, 0, result.stderr)
    assert.deepEqual(timers, ['02'])
  } finally {
    server.closeAllConnections()
    server.close()
  }
})

test('a redirect is not followed, and the key does not travel', async () => {
  const keys: (string | undefined)[] = []
  const other = createServer((request, response) => {
    keys.push(request.headers.authorization)
    answer(request, response)
  })
  const otherPort = await listening(other)
  const server = createServer((request, response) => {
    request.resume()
    if (request.method === 'GET') return answer(request, response)
    response.writeHead(307, { location: `http://127.0.0.1:${otherPort}${request.url}` }).end()
  })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  try {
    const env = { OPENAI_API_KEY: 'sk-secret-1' }
    const result = await run('fanout-complete', ['--url', url], { input: records(1), env })
    assert.equal(result.code, 2)
    assert.match(result.stderr, /HTTP 307 .*redirects to .*--url.*\[refused-by-server\]/)
    assert.deepEqual(keys, [])
  } finally {
    for (const each of [server, other]) {
      each.closeAllConnections()
      each.close()
    }
  }
})

test('a decompression bomb and an endless answer end in a failed record', async () => {
  const { gzipSync } = await import('node:zlib')
  const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, 0x20))
  const server = createServer((request, response) => {
    if (request.method === 'GET') return answer(request, response)
    let body = ''
    request.on('data', (chunk) => (body += chunk))
    request.on('end', () => {
      if (body.includes('q0')) {
        response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        return response.end(bomb)
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const flood = setInterval(() => response.write(`data: ${'x'.repeat(1_000_000)}`), 1)
      response.on('close', () => clearInterval(flood))
    })
  })
  const url = `http://127.0.0.1:${await listening(server)}/v1`
  try {
    const args = ['--url', url, '--max-answer', '8M', '--retries', '0']
    const result = await run('fanout-complete', args, { input: records(2) })
    assert.equal(result.code, 1, result.stderr)
    assert.equal(result.stderr.match(/larger than 8388608 bytes/g)?.length, 2, result.stderr)
  } finally {
    server.closeAllConnections()
    server.close()
  }
})
