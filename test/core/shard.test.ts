import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KeyRule } from '../../src/core/key.ts'
import {
  parseShard,
  shardOfFingerprint,
  shardOfTask,
  shardOfText,
  withShard,
} from '../../src/core/shard.ts'

// Words made with Python's mmh3 5.3: mmh3.hash128(key, 0, x64arch=False) & 0xffffffff.
const VECTORS: readonly [key: string, word: number][] = [
  ['', 0],
  ['1', 3774018811],
  ['chats.json:17', 1313552405],
  ['größe', 394440692],
]

test('the shard of a key is what any murmur3 library gives', () => {
  for (const [key, word] of VECTORS) {
    for (const count of [1, 2, 8, 1000]) assert.equal(shardOfText(key, count), word % count, key)
    assert.equal(shardOfFingerprint(new KeyRule().fingerprintOfText(key), 8), word % 8)
  }
})

test('a million keys split evenly within a percent', () => {
  for (const count of [2, 7, 64]) {
    const sizes = new Int32Array(count)
    for (let id = 0; id < 1_000_000; id++) sizes[shardOfText(String(id), count)]!++
    const even = 1_000_000 / count
    // 64 shards of 15,625 have a standard deviation of 0.8 %: there the bound is four of them.
    const bound = Math.max(0.01, 4 / Math.sqrt(even))
    for (const size of sizes) assert.ok(Math.abs(size / even - 1) <= bound, `${size} of ${even}`)
  }
})

test('K/N as it is written', () => {
  assert.deepEqual(parseShard('0/1'), { index: 0, count: 1 })
  assert.deepEqual(parseShard('03/16'), { index: 3, count: 16 })
  for (const text of [
    '4/4',
    '-1/4',
    '1/0',
    'a/b',
    '0.5/4',
    '1/4.0',
    '1',
    '1/',
    '/4',
    '',
    '1/2/3',
  ]) {
    assert.equal(parseShard(text), undefined, text)
  }
})

test('the placeholder of names', () => {
  const shard = { index: 7, count: 8 }
  assert.equal(withShard('raw.{shard}.jsonl', shard), 'raw.7.jsonl')
  assert.equal(withShard(undefined, shard), undefined)
})

describe('the shard of a task', () => {
  const slurm = (id: number, min: number, max: number, step: number, count: number) => ({
    SLURM_ARRAY_TASK_ID: String(id),
    SLURM_ARRAY_TASK_MIN: String(min),
    SLURM_ARRAY_TASK_MAX: String(max),
    SLURM_ARRAY_TASK_STEP: String(step),
    SLURM_ARRAY_TASK_COUNT: String(count),
  })

  test('of a Slurm array, wherever it starts and however it steps', () => {
    assert.deepEqual(shardOfTask(slurm(0, 0, 7, 1, 8), undefined), { index: 0, count: 8 })
    assert.deepEqual(shardOfTask(slurm(8, 1, 8, 1, 8), undefined), { index: 7, count: 8 })
    assert.deepEqual(shardOfTask(slurm(5, 1, 7, 2, 4), undefined), { index: 2, count: 4 })
    assert.deepEqual(shardOfTask(slurm(3, 3, 3, 1, 1), undefined), { index: 0, count: 1 })
    const { SLURM_ARRAY_TASK_STEP: _, ...noStep } = slurm(2, 1, 4, 1, 4)
    assert.deepEqual(shardOfTask(noStep, undefined), { index: 1, count: 4 })
  })

  test('of a list of Slurm tasks is told by --shards alone', () => {
    assert.throws(() => shardOfTask(slurm(17, 3, 21, 1, 3), undefined), /--shards N/)
    assert.deepEqual(shardOfTask(slurm(17, 3, 21, 1, 3), 32), { index: 17, count: 32 })
    assert.throws(() => shardOfTask(slurm(8, 1, 8, 1, 8), 8), /must be 0 to 7/)
  })

  test('of Kubernetes and GNU parallel', () => {
    assert.deepEqual(shardOfTask({ JOB_COMPLETION_INDEX: '3' }, 4), { index: 3, count: 4 })
    assert.throws(() => shardOfTask({ JOB_COMPLETION_INDEX: '3' }, undefined), /--shards N/)
    assert.throws(() => shardOfTask({ JOB_COMPLETION_INDEX: '4' }, 4), /must be 0 to 3/)
    assert.deepEqual(shardOfTask({ PARALLEL_SEQ: '1', PARALLEL_JOBSLOT: '2' }, 4), {
      index: 0,
      count: 4,
    })
    assert.throws(() => shardOfTask({ PARALLEL_SEQ: '5' }, 4), /must be 1 to 4/)
  })

  test('is never guessed', () => {
    const names = /SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX and PARALLEL_SEQ/
    assert.throws(() => shardOfTask({}, 4), names)
    assert.throws(() => shardOfTask({ PARALLEL_JOBSLOT: '2' }, 4), names)
    assert.throws(() => shardOfTask({ JOB_COMPLETION_INDEX: '' }, 4), /INDEX, which is empty/)
    assert.throws(() => shardOfTask({ SLURM_ARRAY_TASK_ID: '' }, undefined), /ID, which is empty/)
    const empty = { ...slurm(1, 0, 3, 1, 4), SLURM_ARRAY_TASK_COUNT: '' }
    assert.throws(() => shardOfTask(empty, undefined), /COUNT, which is empty/)
    assert.throws(() => shardOfTask({ SLURM_ARRAY_TASK_ID: '1' }, undefined), /MIN, which is not/)
    assert.throws(() => shardOfTask({ JOB_COMPLETION_INDEX: '1', PARALLEL_SEQ: '1' }, 4), /which/)
  })
})
