import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { shardOfText } from '../../src/core/shard.ts'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { type Answered, linesOf, parsed, prompts } from '../support/fanout.ts'
import { newFolder, type Result, run } from '../support/run.ts'
import type { Lifetime } from '../support/servers.ts'

const SHARDS = 4
const INDEXES = Array.from({ length: SHARDS }, (_, index) => index)

type Counts = Record<string, number>

async function simulator(lifetime: Lifetime): Promise<Simulator> {
  const server = await startSimulator({ speed: 500, meanTokens: 50 })
  lifetime.after(() => server.close())
  return server
}

function statsOf(file: string): Counts {
  return JSON.parse(readFileSync(file, 'utf8')) as Counts
}

/** Runs the same command once for each shard. */
function eachShard(name: string, args: readonly string[], cwd: string): Promise<Result[]> {
  return Promise.all(
    INDEXES.map((index) => run(name, ['--shard', `${index}/${SHARDS}`, ...args], { cwd })),
  )
}

const INPUT = [
  '{"id":1,"prompt":"a"}',
  '{"id":"größe","prompt":"b"}',
  '{"prompt":"no key"}',
  '{"id":2,"prompt":',
  'not json',
  ...Array.from({ length: 40 }, (_, at) => `{"id":"x${at}","prompt":"p"}`),
]

describe('--shard', () => {
  test('dedupe-completed: all shards together are the whole, byte for byte', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'in.jsonl'), `${INPUT.join('\n')}\n`)
    writeFileSync(join(cwd, 'done.jsonl'), '{"id":"x3","status":"success"}\n')
    const args = ['--completed', 'done.jsonl', '--stats', 'stats.{shard}.json', 'in.jsonl']
    const results = await eachShard('dedupe-completed', args, cwd)
    const passed = results.flatMap(({ stdout }) => stdout.toString().split('\n').slice(0, -1))
    const whole = await run('dedupe-completed', ['--completed', 'done.jsonl', 'in.jsonl'], { cwd })
    assert.deepEqual(passed.sort(), whole.stdout.toString().split('\n').slice(0, -1).sort())
    let own = 0
    for (const index of INDEXES) {
      const stats = statsOf(join(cwd, `stats.${index}.json`))
      const { records, passed, completed, repeated, invalid, other_shards } = stats
      assert.equal(records, INPUT.length)
      assert.equal(records, passed! + completed! + repeated! + invalid! + other_shards!)
      own += records! - other_shards!
    }
    assert.equal(own, INPUT.length)
    // Each line that is no JSON is named by one shard, and only its exit code is 1.
    for (const line of [4, 5]) {
      const naming = results.filter(({ stderr }) => stderr.includes(`in.jsonl:${line}:`))
      assert.equal(naming.length, 1)
      assert.equal(naming[0]!.code, 1)
    }
    assert.ok(results.filter(({ code }) => code === 1).length <= 2)
  })

  test('extract-prompts: the id of the record decides, after every choice', async () => {
    const cwd = newFolder()
    const rows = Array.from({ length: 30 }, (_, at) => `{"prompt":"question ${at}"}`)
    rows.splice(7, 0, '{"prompt":5}', '{"prompt":"cut')
    writeFileSync(join(cwd, 'rows.jsonl'), `${rows.join('\n')}\n`)
    for (const choice of [
      [],
      ['--samples', '3'],
      ['--shuffle', '7', '--limit', '12', '--samples', '2'],
    ]) {
      const args = [...choice, '--stats', 'stats.{shard}.json', 'rows.jsonl']
      const results = await eachShard('extract-prompts', args, cwd)
      const whole = await run('extract-prompts', [...choice, 'rows.jsonl'], { cwd })
      const lines = results.map(({ stdout }) => stdout.toString().split('\n').slice(0, -1))
      for (const [index, own] of lines.entries()) {
        for (const { id } of parsed<{ id: string }>(own)) {
          assert.equal(shardOfText(id, SHARDS), index)
        }
        const stats = statsOf(join(cwd, `stats.${index}.json`))
        assert.equal(stats.rows, stats.prompts! + stats.rejected! + stats.left_out!)
        const samples = choice.includes('--samples') ? Number(choice.at(-1)) : 1
        assert.equal(stats.prompts! * samples, stats.records! + stats.other_shards!)
      }
      assert.deepEqual(lines.flat().sort(), whole.stdout.toString().split('\n').slice(0, -1).sort())
      for (const row of [8, 9]) {
        const naming = results.filter(({ stderr }) => stderr.includes(`rows.jsonl:${row}:`))
        assert.equal(naming.length, 1, `row ${row}`)
      }
    }
  })

  test('fanout-complete: each record is asked by one task', async (t) => {
    const server = await simulator(t)
    const cwd = newFolder()
    writeFileSync(join(cwd, 'in.jsonl'), `${INPUT.join('\n')}\n`)
    const args = ['--url', `${server.url}/v1`, '-o', 'raw.{shard}.jsonl', '--failures']
    args.push('failures.{shard}.jsonl', '--stats', 'stats.{shard}.json', 'in.jsonl')
    await eachShard('fanout-complete', args, cwd)
    const answers = INDEXES.flatMap((index) =>
      parsed<Answered>(linesOf(join(cwd, `raw.${index}.jsonl`))),
    )
    assert.equal(answers.length, INPUT.length - 2)
    assert.equal(new Set(answers.map(({ id }) => id)).size, INPUT.length - 2)
    assert.equal(server.stats().requests.completed, INPUT.length - 2)
    const failures = INDEXES.flatMap((index) => linesOf(join(cwd, `failures.${index}.jsonl`)))
    assert.equal(failures.length, 2)
    for (const index of INDEXES) {
      const stats = statsOf(join(cwd, `stats.${index}.json`))
      const { records, answered, failed, skipped, left, other_shards } = stats
      assert.equal(records, answered! + failed! + skipped! + left! + other_shards!)
    }
    // The shards of dedupe-completed are the same ones.
    const [own] = await eachShard('dedupe-completed', ['--completed', 'none', 'in.jsonl'], cwd)
    const ids = parsed<{ id?: string }>(own!.stdout.toString().split('\n').slice(0, -1))
    const asked = parsed<Answered>(linesOf(join(cwd, 'raw.0.jsonl')))
    assert.equal(ids.length, asked.length)
  })

  test('--key: a failure record is of the shard of its id, and completed by its answer', async (t) => {
    const server = await simulator(t)
    const cwd = newFolder()
    const ids = Array.from({ length: 12 }, (_, at) => `k${at}`)
    const failed = ids.map((id) => {
      const input = `{"k":"${id}","prompt":"p"}`
      return `{"id":"${id}","status":"error","error":{"code":"x"},"input":${input}}\n`
    })
    writeFileSync(join(cwd, 'failed.jsonl'), failed.join(''))
    writeFileSync(join(cwd, 'none.jsonl'), '')
    const key = ['--key', 'k']
    const left = ['--completed', 'none.jsonl', ...key, 'failed.jsonl']
    const passed = await eachShard('dedupe-completed', left, cwd)
    const url = ['--url', `${server.url}/v1`, '-o', 'raw.{shard}.jsonl']
    await eachShard('fanout-complete', [...url, ...key, 'failed.jsonl'], cwd)
    const answered: string[] = []
    for (const [index, { stdout }] of passed.entries()) {
      const lines = stdout.toString().split('\n').slice(0, -1)
      const own = ids.filter((id) => shardOfText(id, SHARDS) === index)
      assert.deepEqual(
        parsed<Answered>(lines).map(({ id }) => id),
        own,
      )
      const answers = linesOf(join(cwd, `raw.${index}.jsonl`))
      assert.deepEqual(
        parsed<Answered>(answers)
          .map(({ id }) => id)
          .sort(),
        own.sort(),
      )
      answered.push(...answers)
    }
    writeFileSync(join(cwd, 'raw.jsonl'), answered.map((line) => `${line}\n`).join(''))
    const done = ['--completed', 'raw.jsonl', ...key]
    const again = await run('dedupe-completed', [...done, 'failed.jsonl'], { cwd })
    assert.equal(again.stdout.toString(), '', again.stderr)
  })

  test('a shard with nothing to do says so, asks no server and exits 0', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'in.jsonl'), '{"id":1,"prompt":"a"}\n')
    // The key 1 is of shard 3 of 8.
    const idle = /shard 2 of 8: nothing to do/
    const shard = ['--shard', '2/8', 'in.jsonl']
    const asked = await run('fanout-complete', ['--url', 'http://127.0.0.1:1/v1', ...shard], {
      cwd,
    })
    assert.equal(asked.code, 0, asked.stderr)
    assert.match(asked.stderr, idle)
    for (const [name, more] of [
      ['dedupe-completed', ['--completed', 'none']],
      ['extract-prompts', []],
    ] as const) {
      const result = await run(name, [...more, ...shard], { cwd })
      assert.equal(result.code, 0, result.stderr)
      assert.equal(result.stdout.length, 0)
      assert.match(result.stderr, idle)
    }
    const done = await run(
      'dedupe-completed',
      ['--completed', 'none', '--shard', '3/8', 'in.jsonl'],
      {
        cwd,
      },
    )
    assert.equal(done.stdout.toString(), '{"id":1,"prompt":"a"}\n')
    assert.doesNotMatch(done.stderr, /nothing to do/)
  })

  test('auto takes the task of the scheduler', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'in.jsonl'), prompts(40))
    const of = async (env: Record<string, string>, more: string[] = []): Promise<string> => {
      const args = ['--completed', 'none', '--shard', 'auto', ...more, 'in.jsonl']
      const result = await run('dedupe-completed', args, { cwd, env })
      assert.equal(result.code, 0, result.stderr)
      return result.stdout.toString()
    }
    const [, third] = await eachShard('dedupe-completed', ['--completed', 'none', 'in.jsonl'], cwd)
    const expected = third!.stdout.toString()
    const array = {
      SLURM_ARRAY_TASK_MIN: '1',
      SLURM_ARRAY_TASK_MAX: '7',
      SLURM_ARRAY_TASK_STEP: '2',
    }
    const slurm = { ...array, SLURM_ARRAY_TASK_COUNT: '4', SLURM_ARRAY_TASK_ID: '3' }
    assert.equal(await of(slurm), expected)
    assert.equal(await of({ JOB_COMPLETION_INDEX: '1' }, ['--shards', '4']), expected)
    assert.equal(await of({ PARALLEL_SEQ: '2' }, ['--shards', '4']), expected)
  })

  test('what cannot be is refused before anything is done', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'in.jsonl'), prompts(1))
    const refused = async (args: string[], expected: RegExp, env = {}): Promise<void> => {
      const all = [...args, '-o', 'out.{shard}.jsonl', '--url', 'http://127.0.0.1:1/v1', 'in.jsonl']
      const { code, stderr } = await run('fanout-complete', all, { cwd, env })
      assert.equal(code, 2, args.join(' '))
      assert.match(stderr, expected)
    }
    for (const bad of ['4/4', '-1/4', '1/0', 'a/b', '0.5/4', '1/2.5', '']) {
      await refused(['--shard', bad], /--shard takes auto, or K\/N with K from 0 to N - 1/)
    }
    await refused(['--shard', 'auto'], /none of SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX and PARA/)
    const env = { JOB_COMPLETION_INDEX: '' }
    await refused(['--shard', 'auto', '--shards', '4'], /JOB_COMPLETION_INDEX, which is empty/, env)
    await refused(['--shard', '0/4', '--shards', '4'], /--shards N is for --shard auto/)
    await refused([], /\{shard\} in --output needs --shard/)
    const shared = ['--shard', '0/4', '--failures', 'failures.jsonl']
    await refused(shared, /put \{shard\} into --failures too/)
    assert.ok(!existsSync(join(cwd, 'out.0.jsonl')))
  })
})
