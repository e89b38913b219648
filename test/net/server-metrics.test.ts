import assert from 'node:assert/strict'
import { test } from 'node:test'
import { foreignModel, parseServerLoad } from '../../src/net/server-metrics.ts'

const metrics = (...uses: number[]): string =>
  [
    'vllm:num_requests_running{engine="0"} 3.0',
    'vllm:num_requests_running{engine="1"} 4.0',
    'vllm:num_requests_waiting{engine="0"} 1.0',
    'vllm:num_requests_waiting{engine="1"} 1.0',
    ...uses.map((use, engine) => `vllm:kv_cache_usage_perc{engine="${engine}"} ${use}`),
  ].join('\n')

test('requests are added up over engines, the cache is that of the fullest', () => {
  const load = { running: 7, waiting: 2, preemptions: undefined }
  assert.deepEqual(parseServerLoad(metrics(0.4, 0.6)), { ...load, kvUse: 0.6 })
})

test('a use of the cache beyond all of it is none', () => {
  assert.equal(parseServerLoad(metrics(37, 41))!.kvUse, 0)
  assert.equal(parseServerLoad(metrics())!.kvUse, 0)
})

test('what does not tell how many wait is no help', () => {
  for (const text of ['', '<html><body>vllm:num_requests_waiting</body></html>', '{"waiting":3}']) {
    assert.equal(parseServerLoad(text), undefined)
  }
  const negative = 'vllm:num_requests_running 1\nvllm:num_requests_waiting -5\n'
  assert.equal(parseServerLoad(negative), undefined)
})

const gauge = (model: string, running: number): string =>
  ['running', 'waiting']
    .map((what) => `vllm:num_requests_${what}{engine="0",model_name="${model}"} ${running}`)
    .join('\n')

test('of several models only ours counts', () => {
  const text = `${gauge('a', 3)}\n${gauge('b\\"c', 4)}`
  assert.equal(parseServerLoad(text, 'a')!.running, 3)
  assert.equal(parseServerLoad(text, 'b"c')!.waiting, 4)
  assert.equal(parseServerLoad(text)!.running, 7)
})

test('metrics of other models alone are named so', () => {
  assert.equal(foreignModel(gauge('other', 1), 'a'), 'other')
  assert.equal(foreignModel(`${gauge('other', 1)}\n${gauge('a', 1)}`, 'a'), undefined)
  assert.equal(foreignModel(metrics(0.4), 'a'), undefined, 'they name no model')
})
