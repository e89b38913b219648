/**
 * Everything at once: every fault of the simulator, two outages, and a client that is killed at
 * random moments and started again with --resume until it is done. Afterwards every id is there
 * exactly once, and every answer is what the server says it sent.
 *
 * STORM_RECORDS (300; 2000 in `npm run test:storm`) and STORM_SEED set the size and the dice; the
 * seed is printed, and the same one gives the same faults and the same kills.
 */
import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { expectedAnswer } from '../../src/simulator/answer.ts'
import { FAULT_NAMES } from '../../src/simulator/faults.ts'
import { uniform } from '../../src/simulator/random.ts'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { newFolder, type Result, run } from '../support/run.ts'

const RECORDS = Number(process.env.STORM_RECORDS ?? 300)
const SEED = Number(process.env.STORM_SEED ?? Date.now() % 1_000_000)
const SPEED = 100
const CONCURRENCY = 128
const STATUSES = ['408', '429', '500', '502', '503', '504']
/** Milliseconds of wall time after which a run is killed, at least and at most. */
const KILL_AFTER = [800, 3000] as const
const MOST_RUNS = 60

interface Line {
  id: number
  status: string
  conversations: { role: string; content: string | null; reasoning_content?: string }[]
  finish_reason: string
}

/** Every fault at 1 to 5 %. */
function faultSpecs(): string[] {
  return [...Object.keys(FAULT_NAMES), ...STATUSES].map(
    (name, index) => `${name}:${1 + Math.floor(4 * uniform(SEED, index))}%`,
  )
}

function prompt(id: number): string {
  return `Storm ${SEED}, question ${id}: what is ${id} times ${id + 1}? Ünïcode \u{1f600} "quoted"\n`
}

/** Starts the client; ends it with KILL or TERM after a while, unless it is done before. */
async function attempt(folder: string, server: Simulator, round: number): Promise<Result> {
  const args = ['questions.jsonl', '-o', 'out.jsonl', '--resume', '--failures', 'failures.jsonl']
  const pace = ['-c', String(CONCURRENCY), '--clock-speed', String(SPEED), '--retries', '8']
  const budgets = ['--first-token-timeout', '5m', '--idle-timeout', '60s', '--drain', '5s']
  const [least, most] = KILL_AFTER
  const delay = least + (most - least) * uniform(SEED, 1000 + round)
  const signal = uniform(SEED, 2000 + round) < 0.6 ? 'SIGKILL' : 'SIGTERM'
  const timer = new AbortController()
  const result = await run('fanout-complete', [...args, ...pace, ...budgets], {
    cwd: folder,
    env: { OPENAI_BASE_URL: `${server.url}/v1` },
    onStart: (child) => {
      sleep(delay, undefined, { signal: timer.signal }).then(
        () => child.kill(signal),
        () => {},
      )
    },
  })
  timer.abort()
  return result
}

function assertAnswer(line: Line): 'whole' | 'empty' {
  const [user, assistant] = line.conversations
  assert.equal(user?.content, prompt(line.id))
  assert.equal(line.status, 'success')
  const body = { model: 'simulated', messages: [{ role: 'user', content: user?.content }] }
  const expected = expectedAnswer(body, { meanTokens: 200, seed: SEED })
  if (assistant?.content === '' && expected.content !== '') return 'empty'
  assert.equal(assistant?.content, expected.content, `the answer to ${line.id} is another one`)
  assert.equal(assistant?.reasoning_content ?? '', expected.reasoning ?? '')
  assert.equal(line.finish_reason, expected.finish_reason)
  return 'whole'
}

test(`a storm over ${RECORDS} records, seed ${SEED}`, { timeout: 600_000 }, async (context) => {
  context.diagnostic(`STORM_SEED=${SEED} STORM_RECORDS=${RECORDS} repeats this storm`)
  const folder = newFolder()
  const ids = Array.from({ length: RECORDS }, (_, index) => index + 1)
  const questions = ids.map((id) => JSON.stringify({ id, prompt: prompt(id), weight: id / 2 }))
  writeFileSync(join(folder, 'questions.jsonl'), `${questions.join('\n')}\n`)
  const server = await startSimulator({
    speed: SPEED,
    seed: SEED,
    faultSeed: SEED,
    meanTokens: 200,
    peakTokensPerSecond: 1500,
    faults: faultSpecs(),
    outages: ['60s+150s', '45s+400s'],
  })
  let runs = 0
  try {
    for (let code: number | null = null; code !== 0; runs++) {
      assert.ok(runs < MOST_RUNS, `not done after ${runs} runs`)
      const result = await attempt(folder, server, runs)
      code = result.code
      // A run that begins while the server is out says so and ends at once.
      const met = code === 2 && result.stderr.includes('[unreachable]')
      const known = met || [0, 1, 143, null].includes(code)
      assert.ok(known, `run ${runs} ended with ${code}: ${result.stderr.slice(-2000)}`)
      assert.doesNotMatch(result.stderr, /^ {4}at /m, 'a stack trace')
    }
    const text = readFileSync(join(folder, 'out.jsonl'), 'utf8')
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Line)
    const answered = lines.map(({ id }) => id).sort((a, b) => a - b)
    assert.deepEqual(answered, ids, 'every id is there exactly once')
    const empty = lines.filter((line) => assertAnswer(line) === 'empty').length
    const { faults, tokens } = server.stats()
    assert.ok(empty <= (faults.empty ?? 0), 'an empty answer that no fault explains')
    const valid = await run('validate-jsonl', ['-q', 'out.jsonl'], { cwd: folder })
    assert.equal(valid.code, 0, valid.stderr)
    context.diagnostic(`${runs} runs, faults ${JSON.stringify(faults)}, ${JSON.stringify(tokens)}`)
  } finally {
    await server.close()
  }
})
