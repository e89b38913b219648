import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  closeSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { executable, newFolder, run } from '../support/run.ts'

/** Above the size from which a second thread looks over every other block. */
const SIZE = 270 * 1024 * 1024

function largeFile(file: string): { lines: number; bad: number[] } {
  const fd = openSync(file, 'w')
  const text = 'The sky is blue – ünïcode and "quotes" \\ and more. '.repeat(60)
  const bad = [100, 40_000, 40_001, 76_543]
  let lines = 0
  let written = 0
  while (written < SIZE) {
    const batch: string[] = []
    for (let i = 0; i < 500; i++) {
      lines++
      // Two keys come twice: one for the same record, one for another.
      const id = lines === 60_000 ? 7 : lines === 60_001 ? 59_999 : lines
      const line = JSON.stringify({ id, text, ...(lines === 60_001 && { other: true }) })
      batch.push(bad.includes(lines) ? line.slice(0, -1) : line)
    }
    written += writeSync(fd, `${batch.join('\n')}\n`)
  }
  writeSync(fd, '{"id":0,"text":"no newline"}')
  closeSync(fd)
  return { lines: lines + 1, bad }
}

test('a second thread over a large file changes nothing but the time', async () => {
  const folder = newFolder()
  const { lines, bad } = largeFile(join(folder, 'large.jsonl'))
  const results: { hash: string; stderr: string }[] = []
  for (const [index, args] of [[], ['--read-size', '262144']].entries()) {
    const output = join(folder, `out-${index}`)
    const stdout = openSync(output, 'w')
    const result = await run('validate-jsonl', [...args, 'large.jsonl'], { cwd: folder, stdout })
    closeSync(stdout)
    assert.equal(result.code, 1)
    results.push({
      hash: createHash('sha256').update(readFileSync(output)).digest('hex'),
      stderr: result.stderr,
    })
  }
  const repaired = ['plain', 'threaded'].map((name) => join(folder, name))
  for (const [index, args] of [['--read-size', '262144'], []].entries()) {
    const stdout = openSync(repaired[index]!, 'w')
    const result = await run('repair-truncated', [...args, 'large.jsonl'], { cwd: folder, stdout })
    closeSync(stdout)
    assert.equal(result.code, 1)
    assert.match(result.stderr, new RegExp(`${lines - bad.length} records kept, 4 pieces`))
  }
  const [plain, threaded] = repaired.map((file) => readFileSync(file))
  assert.ok(plain!.equals(threaded!), 'repair gives the same with and without a second thread')
  assert.equal(results[0]!.hash, createHash('sha256').update(plain!).digest('hex'))
  await dedupesAlike(folder)
  shareTheWork(folder)
  rmSync(folder, { recursive: true })
  assert.deepEqual(results[0], results[1])
  const { stderr } = results[0]!
  for (const line of bad) assert.match(stderr, new RegExp(`large.jsonl:${line}:\\d+: .*truncated`))
  assert.match(stderr, new RegExp(`large.jsonl:${lines}:29: warning: .*no-final-newline`))
  assert.match(stderr, new RegExp(`${lines - bad.length} of ${lines} lines valid`))
})

async function dedupesAlike(folder: string): Promise<void> {
  const done = Array.from({ length: 900 }, (_, at) => JSON.stringify({ id: at * 90, text: 'a' }))
  writeFileSync(join(folder, 'done.jsonl'), `${done.join('\n')}\n`)
  const results: { code: number | null; stderr: string; hash: string }[] = []
  for (const args of [[], ['--read-size', '262144']]) {
    const output = join(folder, 'out')
    const stdout = openSync(output, 'w')
    const words = [...args, '--completed', 'done.jsonl', 'large.jsonl']
    const { code, stderr } = await run('dedupe-completed', words, { cwd: folder, stdout })
    closeSync(stdout)
    const hash = createHash('sha256').update(readFileSync(output)).digest('hex')
    results.push({ code, stderr, hash })
  }
  assert.deepEqual(results[0], results[1])
  assert.equal(results[0]!.code, 1)
  assert.match(
    results[0]!.stderr,
    /large\.jsonl:60001:\d+: the key '59999' stands here for another/,
  )
  assert.match(results[0]!.stderr, /repeat a key and were not passed on/)
  await dedupesAfterAnswers(folder)
}

/** The bundles find the file of the thread: without it they work, at half the speed. */
function shareTheWork(folder: string): void {
  if (availableParallelism() === 1) return
  for (const command of [
    ['validate-jsonl', '-q'],
    ['repair-truncated', '--check'],
    ['dedupe-completed', '-q', '--completed', 'done.jsonl'],
  ] as const) {
    const [name, ...args] = command
    const profiles = join(folder, `profiles-${name}`)
    const node = ['--cpu-prof', `--cpu-prof-dir=${profiles}`, executable(name)]
    spawnSync(process.execPath, [...node, ...args, 'large.jsonl'], { cwd: folder, stdio: 'ignore' })
    const ofThreads = readdirSync(profiles).map((file) =>
      readFileSync(join(profiles, file), 'utf8'),
    )
    const looked = ofThreads.filter((profile) => profile.includes('"functionName":"lookAt"'))
    assert.equal(looked.length, 1, `no second thread in ${name}`)
  }
}

/** The second thread looks for answers first, then for keys. */
async function dedupesAfterAnswers(folder: string): Promise<void> {
  writeFileSync(join(folder, 'more.jsonl'), '{"id":"new","text":"a"}\n')
  const files = ['--completed', 'large.jsonl', 'large.jsonl', 'more.jsonl', 'large.jsonl']
  const [threaded, plain] = await Promise.all(
    [[], ['--read-size', '262144']].map((args) =>
      run('dedupe-completed', [...args, ...files], { cwd: folder }),
    ),
  )
  assert.equal(threaded!.stdout.toString(), '{"id":"new","text":"a"}\n')
  assert.deepEqual(threaded, plain)
}
