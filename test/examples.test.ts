import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { newFolder } from './support/run.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const dist = process.env.DIST ?? join(root, 'dist')

interface Row {
  id: string
  status: string
  conversations: { role: string; content: string; reasoning_content?: string }[]
}

function rows(file: string): Row[] {
  const text = readFileSync(file, 'utf8').trimEnd()
  return text.split('\n').map((line) => JSON.parse(line) as Row)
}

test('examples/eagle3-data: from Parquet to the trainer, with a kill in the middle', async () => {
  const folder = newFolder()
  mkdirSync(join(folder, 'bin'))
  for (const file of readdirSync(join(dist, 'bin'))) {
    symlinkSync(join(dist, 'bin', file), join(folder, 'bin', file.replace(/\.js$/, '')))
  }
  const script = join(root, 'examples/eagle3-data/run.sh')
  const parquet = join(root, 'examples/eagle3-data/sample.parquet')
  const path = `${folder}/bin${delimiter}${process.env.PATH}`
  const env: NodeJS.ProcessEnv = { ...process.env, PATH: path, OPENAI_BASE_URL: '' }
  const { stderr } = await promisify(execFile)('bash', [script, parquet, folder], { env })

  const resumed = /(\d+) answered, 0 failed, (\d+) completed before/.exec(stderr)
  assert.ok(resumed, stderr)
  assert.ok(Number(resumed[2]) >= 40, 'the first run was not killed in the middle')
  assert.equal(Number(resumed[1]) + Number(resumed[2]), 104)

  const files = ['train', 'eval'].map((part) => join(folder, `specforge.${part}.jsonl`))
  const all = files.flatMap(rows)
  const asked = rows(join(folder, 'questions.jsonl')).map(({ id }) => id)
  assert.deepEqual(all.map(({ id }) => id).sort(), asked.sort(), 'every question is there once')
  for (const { id, status, conversations } of all) {
    assert.ok(id !== '' && status === 'success')
    const roles = conversations.map(({ role }) => role)
    assert.deepEqual(roles, ['user', 'assistant'], 'roles alternate, the assistant is last')
    assert.ok(conversations.every(({ content }) => content !== ''))
  }
  assert.ok(all.some(({ conversations }) => conversations[1]?.reasoning_content))
})
