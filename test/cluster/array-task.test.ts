import assert from 'node:assert/strict'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { examples, missing, newRun } from '../support/cluster.ts'

test('a task of the array with a server of its own, as Slurm starts it', {
  skip: missing('curl'),
  timeout: 60_000,
}, async (t) => {
  const { cwd, env, sh } = await newRun(t, 60, 100)
  Object.assign(env, {
    SHARDS: '3',
    OFFSET: '2',
    SLURM_ARRAY_TASK_ID: '0',
    SLURM_JOB_ID: String(process.pid),
    SERVE: 'simulate-server -q --speed 100 --mean-tokens 50 --port',
  })
  const task = join(examples, 'slurm/array.sbatch')
  const first = await sh('bash', task)
  assert.equal(first.status, 0, first.text)
  const answers = readFileSync(join(cwd, 'raw.2.jsonl'), 'utf8').split('\n').length - 1
  assert.match(first.text, new RegExp(`60 records: ${answers} answered, 0 failed`))
  const again = await sh('bash', task)
  assert.equal(again.status, 0, again.text)
  assert.equal(again.text, 'shard 2: nothing is left\n', 'no server is started for nothing')
  assert.ok(!readdirSync(cwd).includes('raw.2.jsonl.lock'))

  // Nothing left is said of what was looked at, and of nothing else.
  const { SHARDS: _, ...noShards } = env
  const other = await sh('env', '-i', ...pairs(noShards), 'bash', task)
  assert.notEqual(other.status, 0)
  assert.match(other.text, /SHARDS: is set by submit.sh/)
  const questions = readFileSync(join(cwd, 'questions.jsonl'), 'utf8')
  writeFileSync(
    join(cwd, 'questions.jsonl'),
    questions.replaceAll('"prompt":"', '"prompt":"other '),
  )
  const foreign = await sh('bash', task)
  assert.equal(foreign.status, 2, foreign.text)
  assert.match(foreign.text, /answers another request/)
  rmSync(join(cwd, 'questions.jsonl'))
  const none = await sh('bash', task)
  assert.equal(none.status, 2, none.text)
  assert.match(none.text, /questions.jsonl: cannot read: no such file/)
})

function pairs(env: Record<string, string>): string[] {
  return Object.entries(env).map(([name, value]) => `${name}=${value}`)
}
