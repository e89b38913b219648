import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startSimulator } from '../../src/simulator/server.ts'
import { run } from '../support/run.ts'

test('--concurrency auto fills a server of 16 slots and not its queue', async () => {
  const server = await startSimulator({
    speed: 40,
    maxNumSeqs: 16,
    meanTokens: 100,
    lengthSigma: 0.5,
    keepAliveMs: 0,
  })
  const lines = Array.from({ length: 400 }, (_, id) => JSON.stringify({ id, prompt: `q${id}` }))
  try {
    const args = ['-c', 'auto', '--max-concurrency', '256', '--clock-speed', '40']
    const result = await run('fanout-complete', args, {
      input: `${lines.join('\n')}\n`,
      env: { OPENAI_BASE_URL: `${server.url}/v1` },
    })
    assert.equal(result.code, 0, result.stderr)
    assert.equal(result.stdout.toString().trimEnd().split('\n').length, 400)
    const { requests, scheduler } = server.stats()
    assert.equal(scheduler.peak_running, 16, 'the server was filled')
    assert.ok(requests.peak <= 64, `${requests.peak} requests were open at 16 slots`)
    assert.match(result.stderr, /, limit \d+: /)
  } finally {
    await server.close()
  }
})
