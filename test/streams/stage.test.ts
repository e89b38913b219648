import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { describe, it } from 'node:test'
import { concurrentStage } from '../../src/streams/stage.ts'

/** Lets streams go as far as they can. */
const settled = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 5))

interface Work {
  item: number
  done: () => void
  fail: (error: Error) => void
}

function workshop(): { begun: Work[]; work: (item: number) => Promise<void> } {
  const begun: Work[] = []
  const work = (item: number): Promise<void> =>
    new Promise((done, fail) => begun.push({ item, done, fail }))
  return { begun, work }
}

const numbers = (count: number): Readable => Readable.from(Array.from({ length: count }).keys())

describe('a stage of concurrent work', () => {
  it('works on as many items as it may, and takes one for each that ends', async () => {
    const { begun, work } = workshop()
    const { stream } = concurrentStage({ most: 3, isWanted: () => true }, work)
    const ended = pipeline(numbers(5), stream)
    await settled()
    assert.deepEqual(
      begun.map(({ item }) => item),
      [0, 1, 2],
    )
    begun[1]!.done()
    await settled()
    assert.equal(begun.length, 4)
    for (const at of [0, 2, 3]) begun[at]!.done()
    await settled()
    begun[4]!.done()
    await ended
  })

  it('takes no item that is not wanted, until it is told that one is', async () => {
    const { begun, work } = workshop()
    let wanted = 2
    const { stream, more } = concurrentStage(
      { most: 100, isWanted: () => begun.length < wanted },
      work,
    )
    const ended = pipeline(numbers(5), stream)
    await settled()
    assert.equal(begun.length, 2)
    wanted = 4
    await settled()
    assert.equal(begun.length, 2)
    more()
    await settled()
    assert.equal(begun.length, 4)
    wanted = 5
    // An item that ends makes it look again by itself.
    begun[0]!.done()
    await settled()
    assert.equal(begun.length, 5)
    for (const { done } of begun) done()
    await ended
  })

  it('ends the pipeline with the first work that fails', async () => {
    const { begun, work } = workshop()
    const { stream } = concurrentStage({ most: 2, isWanted: () => true }, work)
    const ended = pipeline(numbers(5), stream)
    await settled()
    begun[0]!.fail(new Error('broken'))
    await assert.rejects(ended, /broken/)
  })
})
