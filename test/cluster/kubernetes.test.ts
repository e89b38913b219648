import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
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

interface Checked {
  validate(): void
}
type Model = new (data: unknown) => Checked

// The package is CommonJS and exports by getters, which an ESM import does not see by name.
const require = createRequire(import.meta.url)
const { Job } = require('kubernetes-models/batch/v1/Job') as { Job: Model }
const { PersistentVolumeClaim } = require('kubernetes-models/v1/PersistentVolumeClaim') as {
  PersistentVolumeClaim: Model
}

test('the Kubernetes example fits the schema of the API', () => {
  const [claim, job] = parseAllDocuments(yaml).map((document) => document.toJS() as object)
  new PersistentVolumeClaim(claim).validate()
  new Job(job).validate()
  assert.throws(() => new Job({ ...job, spec: { completions: '64' } }).validate())
})
