import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { command } from '../../bin/fanout-complete.ts'
import { parseArguments } from '../../src/cli/arguments.ts'
import { shardOfTask } from '../../src/core/shard.ts'
import { examples } from '../support/cluster.ts'

const yaml = readFileSync(join(examples, 'kubernetes/job.yaml'), 'utf8')

test('the command of the Kubernetes job is one that fanout-complete takes', () => {
  const args = [...yaml.matchAll(/^ {12}- (\S+)$/gm)].map(([, argument]) => argument!)
  const { options, operands } = parseArguments(command.options, args)
  assert.deepEqual(operands, ['questions.jsonl'])
  assert.equal(options.shard, 'auto')
  const completions = Number(/completions: (\d+)/.exec(yaml)?.[1])
  assert.equal(options.shards, completions, 'one pod for each shard')
  const last = { JOB_COMPLETION_INDEX: String(completions - 1) }
  assert.equal(shardOfTask(last, options.shards).index, completions - 1)
  const grace = Number(/terminationGracePeriodSeconds: (\d+)/.exec(yaml)?.[1])
  assert.ok(options.drain < grace * 1000, 'the drain ends before KILL comes')
})
