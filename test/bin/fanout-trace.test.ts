import assert from 'node:assert/strict'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { linesOf, parsed, prompts } from '../support/fanout.ts'
import { newFolder, run } from '../support/run.ts'

interface State {
  time: string
  elapsed_s: number
  done: number
  failed: number
  in_flight: number
  limit: number
  reason: string
  waiting_at_server?: number
  first_token_ms?: number
  first_token_floor_ms?: number
  tokens_per_second: number
  requests_per_second: number
  retries: number
  endpoints?: { url: string; in_flight: number }[]
}

describe('fanout-complete --trace', () => {
  let server: Simulator
  let other: Simulator

  before(async () => {
    const options = { speed: 20, maxNumSeqs: 8, meanTokens: 100, keepAliveMs: 0 }
    server = await startSimulator(options)
    other = await startSimulator(options)
  })
  after(async () => {
    await server.close()
    await other.close()
  })

  const fanout = (args: readonly string[]) =>
    run('fanout-complete', ['--clock-speed', '20', '--url', `${server.url}/v1`, ...args], {
      input: prompts(60),
    })

  test('a line for each second of server time, and a last one when all is done', async () => {
    const trace = join(newFolder(), 'trace.jsonl')
    const result = await fanout(['-q', '-c', 'auto', '--trace', trace])
    assert.equal(result.code, 0, result.stderr)
    const states = parsed<State>(linesOf(trace))
    const last = states.at(-1)!
    assert.ok(states.length >= 3 && states.length <= last.elapsed_s + 2, `${states.length} lines`)
    assert.deepEqual([last.done, last.failed, last.in_flight], [60, 0, 0])
    assert.ok(states.some((state) => state.tokens_per_second > 0 && state.first_token_ms! > 0))
    assert.ok(states.some((state) => state.waiting_at_server !== undefined))
    for (const { limit, reason, endpoints, time } of states) {
      assert.ok(limit >= 1 && reason.length > 0)
      assert.equal(endpoints, undefined)
      assert.equal(new Date(time).toISOString(), time)
    }
  })

  test('tells of each server where there are several, and of a fixed pace', async () => {
    const trace = join(newFolder(), 'trace.jsonl')
    const result = await fanout(['-q', '-c', '6', '--url', `${other.url}/v1`, '--trace', trace])
    assert.equal(result.code, 0, result.stderr)
    const states = parsed<State>(linesOf(trace))
    for (const { endpoints, limit, reason } of states) {
      assert.deepEqual([endpoints!.length, limit, reason], [2, 6, 'fixed'])
    }
  })

  test('a run that goes on, goes on with its trace; a torn line of a killed one is taken off', async () => {
    const folder = newFolder()
    const trace = join(folder, 'trace.jsonl')
    const output = join(folder, 'out.jsonl')
    const args = ['-q', '-o', output, '--trace', trace]
    assert.equal((await fanout(args)).code, 0)
    const first = readFileSync(trace)
    appendFileSync(trace, '{"time":"2026-11-3')
    const second = await fanout([...args, '--resume'])
    assert.equal(second.code, 0, second.stderr)
    const both = readFileSync(trace)
    assert.ok(both.subarray(0, first.length).equals(first), 'what the first run wrote stays')
    assert.ok(both.length > first.length, 'and the second writes behind it')
    assert.equal(parsed<State>(linesOf(trace)).at(-1)!.done, 60)
    assert.equal((await fanout([...args, '--overwrite'])).code, 0)
    assert.ok(!readFileSync(trace).subarray(0, first.length).equals(first), 'begun anew')
  })

  test('refusals are no first tokens', async (t) => {
    for (const fault of ['429', '500']) {
      const refusing = await startSimulator({ speed: 100, faults: [`${fault}:100%`] })
      t.after(() => refusing.close())
      const trace = join(newFolder(), 'trace.jsonl')
      const args = ['--clock-speed', '100', '--retries', '1', '--trace', trace]
      const result = await run('fanout-complete', ['--url', `${refusing.url}/v1`, ...args], {
        input: prompts(5),
      })
      assert.equal(result.code, 1, result.stderr)
      const told = parsed<State>(linesOf(trace)).filter((state) => 'first_token_ms' in state)
      assert.deepEqual(told, [], fault)
    }
  })

  test('a trace that cannot be opened is exit 2 before anything is sent', async () => {
    for (const trace of ['/nonexistent/trace', newFolder()]) {
      const result = await fanout(['-q', '--trace', trace])
      assert.equal(result.code, 2)
      assert.match(result.stderr, /cannot write: /)
      assert.equal(result.stdout.length, 0)
    }
    const output = join(newFolder(), 'out.jsonl')
    const same = await fanout(['-q', '-o', output, '--trace', output])
    assert.equal(same.code, 2)
    assert.match(same.stderr, /two outputs are the same file.*\[same-file\]/)
    assert.ok(!existsSync(`${output}.lock`), 'no lock is left')
  })

  const full = existsSync('/dev/full') ? false : 'no /dev/full: NOT TESTED'
  test('one that cannot be written costs no answer, and is exit 2', { skip: full }, async () => {
    const result = await fanout(['-q', '--trace', '/dev/full'])
    assert.equal(result.code, 2)
    assert.match(result.stderr, /^fanout-complete: \/dev\/full: cannot write: no space left .*\n$/)
    assert.equal(result.stdout.toString().trimEnd().split('\n').length, 60)
  })
})
