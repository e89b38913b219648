import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { dice, newSeed } from '../support/dice.ts'
import { type Answered, linesOf, parsed, prompts } from '../support/fanout.ts'
import { executable, newFolder, run } from '../support/run.ts'
import type { Lifetime } from '../support/servers.ts'

const RECORDS = 200
/** So often each of the two ways is killed. */
const KILLS = 14

/** Answers of about a hundred lines a second, of 2 to 20 kB. */
async function simulator(lifetime: Lifetime): Promise<Simulator> {
  const server = await startSimulator({
    speed: 100,
    meanTokens: 400,
    maxTokens: 2000,
    maxNumSeqs: 16,
  })
  lifetime.after(() => server.close())
  return server
}

interface Trial {
  folder: string
  out: string
  questions: string
  server: Simulator
  random: () => number
}

async function trial(t: Lifetime & { diagnostic(text: string): void }): Promise<Trial> {
  const seed = newSeed()
  t.diagnostic(`SEED=${seed}`)
  const folder = newFolder()
  const questions = join(folder, 'questions.jsonl')
  writeFileSync(questions, prompts(RECORDS))
  const out = join(folder, 'out.jsonl')
  return { folder, out, questions, server: await simulator(t), random: dice(seed) }
}

/** Whole lines of a file that may be torn. */
function wholeLines(file: string): number {
  if (!existsSync(file)) return 0
  return readFileSync(file, 'latin1').split('\n').length - 1
}

/** Kills the process at a random moment after its first request is on the way. */
async function killAtRandom(child: ChildProcess, { server, random }: Trial): Promise<void> {
  const before = server.stats().requests.total
  const ended = once(child, 'close')
  const running = (): boolean => child.exitCode === null && child.signalCode === null
  while (running() && server.stats().requests.total === before) await sleep(2)
  await sleep(random() * 150)
  child.kill('SIGKILL')
  await ended
}

/** What must hold in the end, whatever was killed when. */
async function checkEnd({ out, server }: Trial, kills: number, torn: number): Promise<void> {
  const answers = parsed<Answered>(linesOf(out))
  const ids = answers.map(({ id }) => Number(id)).sort((a, b) => a - b)
  assert.deepEqual(
    ids,
    Array.from({ length: RECORDS }, (_, i) => i + 1),
  )
  assert.ok(answers.every(({ status }) => status === 'success'))
  const valid = await run('validate-jsonl', ['-q', '--require', 'id,conversations', out])
  assert.equal(valid.code, 0, valid.stderr)
  const { completed } = server.stats().requests
  // Answers that the server had sent and a kill kept from the file are asked for again: each of
  // them at most once a kill and slot, and never one that had reached the file.
  assert.ok(completed >= RECORDS && completed <= RECORDS + kills * 16, `${completed} answers`)
  assert.ok(torn <= kills)
}

describe('kill -9 at any moment', { concurrency: true }, () => {
  test('fanout-complete -o FILE --resume until done', async (t) => {
    const all = await trial(t)
    const { server, out, questions } = all
    let kills = 0
    let before = 0
    for (let round = 0; round < KILLS && wholeLines(out) < RECORDS; round++) {
      const args = ['-o', out, '--resume', '--url', `${server.url}/v1`, '-c', '16', '-q', questions]
      const child = spawn(process.execPath, [executable('fanout-complete'), ...args], {
        stdio: 'ignore',
      })
      await killAtRandom(child, all)
      if (child.signalCode === 'SIGKILL') kills++
      const now = wholeLines(out)
      assert.ok(now >= before, 'answers are lost')
      before = now
    }
    t.diagnostic(`${kills} kills`)
    assert.ok(kills >= 5, `only ${kills} kills`)
    const last = ['-o', out, '--resume', '--url', `${server.url}/v1`, questions]
    const asked = server.stats().requests.total
    const missing = RECORDS - wholeLines(out)
    const done = await run('fanout-complete', last)
    assert.equal(done.code, 0, done.stderr)
    assert.equal(server.stats().requests.total, asked + missing)
    const removed = existsSync(`${out}.removed.jsonl`) ? linesOf(`${out}.removed.jsonl`).length : 0
    await checkEnd(all, kills, removed)
  })

  test('dedupe-completed | fanout-complete >> FILE, repaired in between', async (t) => {
    const all = await trial(t)
    const { server, out, questions } = all
    const pipeline =
      'exec "$0" "$1" --completed "$3" "$4" 2>/dev/null | exec "$0" "$2" --url "$5" -c 16 >> "$3" 2>/dev/null'
    const words = [
      executable('dedupe-completed'),
      executable('fanout-complete'),
      out,
      questions,
      `${server.url}/v1`,
    ]
    let kills = 0
    for (let round = 0; round < KILLS && wholeLines(out) < RECORDS; round++) {
      if (existsSync(out)) {
        const repaired = await run('repair-truncated', ['--tail', '-i', out])
        assert.equal(repaired.code, 0, repaired.stderr)
      }
      const before = server.stats().requests.total
      // A group of its own, so that both are killed at once.
      const child = spawn('sh', ['-c', pipeline, process.execPath, ...words], {
        stdio: 'ignore',
        detached: true,
      })
      const ended = once(child, 'close')
      const running = (): boolean => child.exitCode === null && child.signalCode === null
      while (running() && server.stats().requests.total === before) await sleep(2)
      await sleep(all.random() * 150)
      try {
        process.kill(-child.pid!, 'SIGKILL')
        kills++
      } catch {
        // It was done before.
      }
      await ended
      // Its open requests are aborted before the next run begins.
      while (server.stats().requests.open > 0) await sleep(2)
    }
    t.diagnostic(`${kills} kills`)
    assert.ok(kills >= 3, `only ${kills} kills`)
    if (existsSync(out)) await run('repair-truncated', ['--tail', '-i', out])
    const child = spawn('sh', ['-c', pipeline, process.execPath, ...words], { stdio: 'ignore' })
    const [code] = (await once(child, 'close')) as [number]
    assert.equal(code, 0)
    await checkEnd(all, kills, 0)
  })
})
