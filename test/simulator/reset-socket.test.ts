/**
 * A process that has reset a connection must be able to end: a storm whose last outage met a
 * connection that was just ending never did, and kept a core busy (uv_run in CleanupHandles).
 */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { it } from 'node:test'
import { fileURLToPath } from 'node:url'

const MODULE = fileURLToPath(new URL('../../src/simulator/reset-socket.ts', import.meta.url))
/** Far more than it needs: without an end there is none at all. */
const PATIENCE_MS = 30_000

/** What a process prints and how it ends in which a server does that to a connection. */
function ends(what: string): { status: number | null; stdout: string } {
  const script = `
    import net from 'node:net'
    import { resetSocket } from ${JSON.stringify(MODULE)}
    const server = net.createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => {})
      socket.on('close', () => server.close(() => console.log('server closed')))
      ${what}
    })
    server.listen(0, '127.0.0.1', () => {
      const client = net.connect(server.address().port, '127.0.0.1')
      client.on('error', ({ code }) => console.log(code))
      client.on('end', () => console.log('end'))
      client.resume()
    })`
  return spawnSync(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
    encoding: 'utf8',
    timeout: PATIENCE_MS,
  })
}

it('a connection in use is reset', () => {
  const { status, stdout } = ends('resetSocket(socket)')
  assert.equal(status, 0)
  assert.match(stdout, /ECONNRESET/)
})

it('a connection that is ending is closed, and the process can end', () => {
  const { status, stdout } = ends(`socket.end('x'); resetSocket(socket)`)
  assert.equal(status, 0, 'the process has not ended')
  assert.match(stdout, /server closed/)
})

it('a connection whose end was sent is reset', () => {
  const { status, stdout } = ends(`socket.end('x', () => resetSocket(socket))`)
  assert.equal(status, 0)
  assert.match(stdout, /server closed/)
})
