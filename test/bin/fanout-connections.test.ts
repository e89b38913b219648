import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { fanout, prompts } from '../support/fanout.ts'
import { beginStream, DONE, delta, events, serve } from '../support/servers.ts'

/** Requests that are open at once. */
const OPEN = 4
/** Milliseconds after which a server that waits for the rest of its requests says that they do not come. */
const PATIENCE = 3000

/**
 * A reply ends with its [DONE] or a moment after it, as packets happen to be cut. A connection that
 * was taken twice for free once both had happened had a second request wait behind a living one.
 */
test('replies that end with [DONE] and replies that end after it: one request a connection', async (t) => {
  const group: ServerResponse[] = []
  let stuck = 0
  const answer = (): void => {
    for (const [place, response] of group.splice(0).entries()) {
      const last = events(delta({ content: 'b' }, 'stop'), DONE)
      if (place % 2 === 0) {
        response.write(last)
        setTimeout(() => response.end(), 20)
      } else response.end(last)
    }
  }
  const server = await serve(t, (_, response) => {
    beginStream(response)
    response.write(events(delta({ content: 'a' })))
    group.push(response)
    if (group.length === OPEN) return answer()
    setTimeout(() => {
      if (!group.includes(response)) return
      stuck++
      answer()
    }, PATIENCE)
  })
  const run = await fanout(server.url, ['-c', String(OPEN)], { input: prompts(OPEN * 25) })
  assert.equal(run.code, 0, run.stderr)
  assert.deepEqual([stuck, run.stats.answered, run.stats.retries], [0, OPEN * 25, 0])
})
