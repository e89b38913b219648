import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { command } from '../../bin/dedupe-completed.ts'
import { newFolder, runInProcess } from './run.ts'

export interface DedupeOutcome {
  code: number | null
  out: string
  stderr: string
  stats: Record<string, number> & { completed_files: Record<string, number> }
}

/** Runs dedupe-completed in this process over one file of answers and one of questions. */
export async function dedupe(
  completed: string | Buffer | undefined,
  input: string | Buffer,
  args: string[] = [],
): Promise<DedupeOutcome> {
  const folder = newFolder()
  const [done, questions, stats] = ['done', 'questions', 'stats'].map((name) =>
    join(folder, name),
  ) as [string, string, string]
  if (completed !== undefined) writeFileSync(done, completed)
  writeFileSync(questions, input)
  const all = ['--completed', done, '--stats', stats, ...args, questions]
  const { code, stdout, stderr } = await runInProcess(command, all)
  const text = (() => {
    try {
      return readFileSync(stats, 'utf8')
    } catch {
      return '{}'
    }
  })()
  const counts = JSON.parse(text) as DedupeOutcome['stats']
  if (counts.records !== undefined) {
    const { records, passed, completed: known, repeated, invalid } = counts
    assert.equal(records, passed! + known! + repeated! + invalid!)
  }
  return { code, out: stdout.toString(), stderr, stats: counts }
}

/** Asserts which of the lines are passed on. */
export async function passes(
  completed: string,
  lines: string[],
  expected: string[],
  args: string[] = [],
) {
  const result = await dedupe(completed, lines.map((line) => `${line}\n`).join(''), args)
  assert.deepEqual(result.out.split('\n').slice(0, -1), expected, result.stderr)
  return result
}
