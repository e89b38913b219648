import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { examples, missing, newRun } from '../support/cluster.ts'

const RECORDS = 400

test('GNU parallel: clients killed, started again with --resume-failed, proved', {
  skip: missing('parallel'),
  timeout: 120_000,
}, async (t) => {
  const { cwd, sh } = await newRun(t, RECORDS, 100)
  const script = join(examples, 'gnu-parallel', 'run.sh')
  const first = sh(script, '4', '-j', '4')
  // Two of the four clients are killed by the process number in their locks.
  for (const index of [1, 2]) {
    const raw = join(cwd, `raw.${index}.jsonl`)
    while ((readText(raw).match(/\n/g) ?? []).length < 3) await sleep(20)
    process.kill((JSON.parse(readText(`${raw}.lock`)) as { pid: number }).pid, 'SIGKILL')
  }
  const { status, text } = await first
  assert.equal(status, 2, `the number of jobs that failed: ${text}`)
  const again = await sh(script, '4', '-j', '4', '--resume-failed')
  assert.equal(again.status, 0, again.text)
  const jobs = readText(join(cwd, 'jobs.log')).trimEnd().split('\n').slice(1)
  assert.equal(jobs.length, 6, 'four, and the two that had failed')
  const raw = readdirSync(cwd).filter((name) => /^raw\..*\.jsonl$/.test(name))
  const prove = join(examples, 'slurm', 'prove.sh')
  const proof = await sh(prove, 'questions.jsonl', 'merged.jsonl', ...raw)
  assert.equal(proof.status, 0, proof.text)
  assert.match(proof.text, /^PROVED: 400 keys, each answered exactly once, are in merged.jsonl$/m)

  // A proof fails where an answer is missing, is there twice, or is to no question.
  const merged = readText(join(cwd, 'merged.jsonl')).trimEnd().split('\n')
  const fails = async (lines: string[], why: RegExp): Promise<void> => {
    writeFileSync(join(cwd, 'wrong.jsonl'), `${lines.join('\n')}\n`)
    const result = await sh(prove, 'questions.jsonl', 'never.jsonl', 'wrong.jsonl')
    assert.equal(result.status, 1)
    assert.match(result.text, why)
    assert.ok(!readdirSync(cwd).some((name) => name.startsWith('never')))
  }
  await fails(merged.slice(1), /NOT PROVED: 1 questions have no answer/)
  await fails([...merged, merged[0]!], /NOT PROVED: lines are damaged, or a key is answered twice/)
  const other = merged[0]!.replace(/"id":\d+/, '"id":"other"')
  await fails([...merged, other], /NOT PROVED: 1 answers are to no question/)
  const foreign = merged.map((line) =>
    line.replace(/"request_hash":"\w+"/, '"request_hash":"0000000000000000"'),
  )
  await fails(foreign, /NOT PROVED: there are answers to other requests/)
})

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}
