import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startSimulator } from '../../src/simulator/server.ts'
import { newFolder, run } from '../support/run.ts'

interface BatchAnswer {
  id: string
  custom_id: string
  response: { status_code: number; request_id: string; body: Record<string, unknown> }
  error: null
}

test('an OpenAI batch file of mixed endpoints runs unchanged, and its answers complete it', async () => {
  const server = await startSimulator({ speed: 500, meanTokens: 50, keepAliveMs: 0 })
  const folder = newFolder()
  const model = 'simulated'
  const user = [{ role: 'user', content: 'Why?' }]
  const bodies: [string, object, string][] = [
    ['/v1/chat/completions', { model, messages: user }, 'choices'],
    ['/v1/completions', { model, prompt: 'Because' }, 'choices'],
    ['/v1/embeddings', { model, input: 'why' }, 'data'],
    ['/v1/responses', { model, input: 'Why?' }, 'output'],
  ]
  const lines = bodies.map(([url, body], index) =>
    JSON.stringify({ custom_id: `r${index}`, method: 'POST', url, body }),
  )
  writeFileSync(join(folder, 'batch.jsonl'), `${lines.join('\n')}\n`)
  const env = { OPENAI_BASE_URL: `${server.url}/v1` }
  try {
    const checked = await run('validate-jsonl', ['-q', '--as', 'batch-input', 'batch.jsonl'], {
      cwd: folder,
    })
    assert.equal(checked.code, 0, checked.stderr)
    const args = ['batch.jsonl', '-o', 'out.jsonl', '--clock-speed', '500']
    const result = await run('fanout-complete', args, { cwd: folder, env })
    assert.equal(result.code, 0, result.stderr)
    const passed = await run('validate-jsonl', ['--as', 'batch-output', 'out.jsonl'], {
      cwd: folder,
    })
    assert.equal(passed.code, 0, passed.stderr)
    const answers = passed.stdout
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as BatchAnswer)
    for (const [index, [, , member]] of bodies.entries()) {
      const answer = answers.find(({ custom_id }) => custom_id === `r${index}`)
      assert.equal(answer?.response.status_code, 200)
      assert.ok(Array.isArray(answer?.response.body[member]), `${member} of r${index}`)
      assert.equal(answer?.error, null)
    }
    const left = await run('dedupe-completed', ['--completed', 'out.jsonl', 'batch.jsonl'], {
      cwd: folder,
    })
    assert.equal(left.stdout.length, 0)
    assert.equal(left.code, 0, left.stderr)
  } finally {
    await server.close()
  }
})
