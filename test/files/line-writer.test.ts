import assert from 'node:assert/strict'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemClock } from '../../src/cli/system-clock.ts'
import { ToolError } from '../../src/core/tool-error.ts'
import { LineWriter } from '../../src/files/line-writer.ts'
import { newFolder } from '../support/run.ts'

function writerTo(
  file: string,
  more: object = {},
): { writer: LineWriter; fd: number; blocked: unknown[] } {
  const fd = openSync(file, 'a')
  const blocked: unknown[] = []
  const writer = new LineWriter(fd, file, {
    clock: systemClock(),
    regular: true,
    syncEvery: 1,
    onBlocked: (reason) => blocked.push(reason),
    ...more,
  })
  return { writer, fd, blocked }
}

test('keeps the order, writes all, and syncs while it is written to', async () => {
  const file = join(newFolder(), 'out')
  const { writer, fd } = writerTo(file)
  const lines = Array.from({ length: 3000 }, (_, i) => `${i} ${'é'.repeat(i % 700)}\n`)
  for (let at = 0; at < lines.length; at += 100) {
    await Promise.all(lines.slice(at, at + 100).map((line) => writer.write(line)))
  }
  await writer.close()
  // Nothing may touch the descriptor from here on.
  closeSync(fd)
  assert.equal(readFileSync(file, 'utf8'), lines.join(''))
})

test('what is written is in the file when the promise says so', async () => {
  const file = join(newFolder(), 'out')
  const { writer, fd } = writerTo(file)
  for (let i = 1; i <= 50; i++) {
    await writer.write(`${i}\n`)
    assert.equal(readFileSync(file, 'utf8').split('\n').length, i + 1)
  }
  await writer.close()
  closeSync(fd)
})

test('a device that is full fails at once, and so does what comes later', async () => {
  const { writer, fd } = writerTo('/dev/full', { regular: false })
  const results = await Promise.allSettled([writer.write('a\n'), writer.write('b\n')])
  assert.ok(
    results.every((result) => result.status === 'rejected' && result.reason instanceof ToolError),
  )
  await assert.rejects(writer.write('c\n'), /no space left/)
  await writer.close().catch(() => {})
  closeSync(fd)
})

test('a full disk is waited out until it is given up; then what waits is rejected', async () => {
  // /dev/full answers as a full disk does.
  const { writer, fd, blocked } = writerTo('/dev/full', { syncEvery: 0 })
  const written = writer.write('a\n').then(
    () => 'written',
    (error: Error) => error.message,
  )
  while (blocked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
  assert.match(String(blocked[0]), /no space left/)
  writer.abandon()
  assert.match(await written, /no space left/)
  closeSync(fd)
})
