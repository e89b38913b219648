import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
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
})
