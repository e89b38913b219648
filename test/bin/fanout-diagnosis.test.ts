import assert from 'node:assert/strict'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { createServer as createNetServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newFolder, run } from '../support/run.ts'

const hasNginx = spawnSync('nginx', ['-v']).status === 0
/** nginx's default of 60 s in one second of wall time. */
const SPEED = 60

async function freePort(): Promise<number> {
  const server = createNetServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}

/** nginx as people put it before vLLM, its read timeout scaled down from 60 s to 1 s. */
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
       proxy_pass http://127.0.0.1:${upstream}; proxy_read_timeout 1s; proxy_buffering off; } } }`,
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
