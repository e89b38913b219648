import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { Scheduler, type SchedulerOptions } from '../../src/simulator/scheduler.ts'
import type { Sequence } from '../../src/simulator/sequence.ts'
import { drain } from './virtual-load.ts'

/** 100 ms a decode step of one sequence, 10 ms more for each further one; 1 ms a prompt token. */
const OPTIONS: SchedulerOptions = {
  maxNumSeqs: 8,
  kvCacheTokens: 0,
  prefillTokensPerSecond: 1_000,
  prefillChunk: 100,
  peakTokensPerSecond: 100,
  halfBatch: 9,
}

function near(actual: number | undefined, expected: number): void {
  assert.ok(
    actual !== undefined && Math.abs(actual - expected) < 1e-3,
    `${actual}, not ${expected}`,
  )
}

describe('scheduler', () => {
  it('gives the first token at the end of prefill and one a step after that', () => {
    const scheduler = new Scheduler(OPTIONS)
    const sequence = scheduler.add({ promptTokens: 50, outputTokens: 3 }, 1_000)
    scheduler.advance(1_149)
    assert.equal(sequence.produced, 0)
    scheduler.advance(1_150)
    assert.equal(sequence.produced, 1)
    near(drain(scheduler, 1_150), 1_350)
    assert.equal(sequence.state, 'finished')
    near(sequence.finishedAt, 1_350)
    assert.equal(scheduler.running, 0)
  })

  it('says the same however often it is asked', () => {
    const options = { ...OPTIONS, kvCacheTokens: 200 }
    const often = new Scheduler(options)
    const once = new Scheduler(options)
    const specs = [40, 80, 30, 7].map((n) => ({ promptTokens: n, outputTokens: n }))
    const [a, b] = [often, once].map((s) => specs.map((spec) => s.add(spec, 0)))
    for (let now = 0; now < 100_000; now += 33) often.advance(now)
    once.advance(100_000)
    for (const [i, sequence] of a!.entries()) near(sequence.finishedAt, b![i]!.finishedAt!)
    assert.deepEqual([often.generatedTokens, once.generatedTokens], [157, 157])
    assert.ok(often.preemptions > 0)
    assert.equal(once.preemptions, often.preemptions)
  })

  it('computes a long prompt in chunks while others go on decoding', () => {
    const scheduler = new Scheduler(OPTIONS)
    const first = scheduler.add({ promptTokens: 1, outputTokens: 100 }, 0)
    scheduler.advance(100)
    const second = scheduler.add({ promptTokens: 250, outputTokens: 1 }, 100)
    drain(scheduler, 100)
    // The step in progress, two with 100 prompt tokens, one with 50 and two that decode.
    near(second.firstTokenAt, 100 + 100 + 2 * (100 + 100) + 110 + 50)
    near(second.scheduledAt, 200)
    assert.equal(first.state, 'finished')
  })

  it('runs at most maxNumSeqs, the others wait their turn', () => {
    const scheduler = new Scheduler({ ...OPTIONS, maxNumSeqs: 2 })
    const all = [1, 2, 3, 4].map(() => scheduler.add({ promptTokens: 1, outputTokens: 5 }, 0))
    scheduler.advance(110)
    assert.deepEqual([scheduler.running, scheduler.waiting], [2, 2])
    drain(scheduler, 110)
    const order = all.map((s) => s.scheduledAt!)
    assert.deepEqual(
      order,
      order.toSorted((a, b) => a - b),
    )
    assert.equal(scheduler.peakRunning, 2)
  })

  it('takes lower priorities first, and first come first served among equals', () => {
    const finished: Sequence[] = []
    const options = { ...OPTIONS, maxNumSeqs: 1 }
    const scheduler = new Scheduler(options, { finished: (s) => finished.push(s) })
    for (const priority of [0, 5, 0, -1, 5]) {
      scheduler.add({ promptTokens: 1, outputTokens: 2, priority }, 0)
    }
    drain(scheduler, 0)
    assert.deepEqual(
      finished.map((s) => s.order),
      [0, 3, 2, 1, 4],
    )
  })

  it('preempts the sequence started last when the cache is full, and computes it again', () => {
    const scheduler = new Scheduler({ ...OPTIONS, kvCacheTokens: 100 })
    const first = scheduler.add({ promptTokens: 20, outputTokens: 60 }, 0)
    const second = scheduler.add({ promptTokens: 20, outputTokens: 60 }, 0)
    let usage = 0
    while (scheduler.nextStepAt !== undefined) {
      scheduler.advance(scheduler.nextStepAt)
      usage = Math.max(usage, scheduler.kvCacheUsage)
    }
    assert.ok(usage <= 1 && usage > 0.9)
    assert.equal(scheduler.preemptions, 1)
    assert.ok(first.finishedAt! < second.finishedAt!)
    assert.equal(second.produced, 60)
    assert.equal(scheduler.generatedTokens, 120)
    assert.equal(scheduler.promptTokens, 40)
    assert.equal(scheduler.kvCacheUsage, 0)
  })

  it('refuses a sequence that could never fit', () => {
    const scheduler = new Scheduler({ ...OPTIONS, kvCacheTokens: 100 })
    assert.throws(() => scheduler.add({ promptTokens: 50, outputTokens: 51 }, 0), RangeError)
  })

  it('removes an aborted sequence at once, running or waiting', () => {
    const scheduler = new Scheduler({ ...OPTIONS, maxNumSeqs: 1, kvCacheTokens: 1_000 })
    const [running, waiting, next] = [1, 2, 3].map(() =>
      scheduler.add({ promptTokens: 10, outputTokens: 50 }, 0),
    )
    scheduler.abort(waiting!, 400)
    assert.equal(scheduler.waiting, 1)
    scheduler.abort(running!, 1_015)
    assert.deepEqual([running!.state, running!.produced, scheduler.running], ['aborted', 10, 0])
    assert.equal(scheduler.kvCacheUsage, 0)
    scheduler.advance(1_111)
    assert.equal(next!.state, 'running')
    drain(scheduler, 1_111)
    assert.deepEqual([next!.state, waiting!.produced], ['finished', 0])
    assert.equal(scheduler.generatedTokens, 60)
  })

  it('law: every sequence finishes with all its tokens, within the limits', () => {
    const spec = fc.record({
      promptTokens: fc.integer({ min: 1, max: 200 }),
      outputTokens: fc.integer({ min: 1, max: 100 }),
      at: fc.integer({ min: 0, max: 20_000 }),
      abortAfter: fc.option(fc.integer({ min: 0, max: 20_000 })),
    })
    const property = fc.property(fc.array(spec, { maxLength: 30 }), (specs) => {
      const scheduler = new Scheduler({ ...OPTIONS, maxNumSeqs: 4, kvCacheTokens: 400 })
      const events: { at: number; run: (now: number) => void }[] = []
      const sequences: Sequence[] = []
      for (const [index, { at, abortAfter, ...sizes }] of specs.entries()) {
        const add = (now: number): void => {
          sequences[index] = scheduler.add(sizes, now)
        }
        events.push({ at, run: add })
        if (abortAfter === null) continue
        events.push({ at: at + abortAfter, run: (now) => scheduler.abort(sequences[index]!, now) })
      }
      for (const { at, run } of events.toSorted((a, b) => a.at - b.at)) {
        run(at)
        assert.ok(scheduler.running <= 4 && scheduler.kvCacheUsage <= 1)
      }
      drain(scheduler, 40_000)
      assert.deepEqual([scheduler.running, scheduler.waiting, scheduler.kvCacheUsage], [0, 0, 0])
      for (const s of sequences) {
        assert.ok(
          s.state === 'aborted' || (s.state === 'finished' && s.produced === s.outputTokens),
        )
      }
      const produced = sequences.reduce((sum, s) => sum + s.produced, 0)
      assert.equal(scheduler.generatedTokens, produced)
    })
    fc.assert(property, { numRuns: 300 })
  })
})
