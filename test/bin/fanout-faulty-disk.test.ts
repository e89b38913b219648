import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { assertBalanced, prompts, type Stats } from '../support/fanout.ts'
import { EDQUOT, ERRNO, FaultyDisk } from '../support/faulty-disk.ts'
import { newFolder, type Result, type RunOptions, run } from '../support/run.ts'
import { answerWell, type Lifetime, serve } from '../support/servers.ts'

const probe = FaultyDisk.mount()
await probe?.unmount()
const skip = probe ? false : 'no right to mount a file system of our own: NOT TESTED'

function newDisk(lifetime: Lifetime): FaultyDisk {
  const disk = FaultyDisk.mount()!
  lifetime.after(() => disk.unmount())
  return disk
}

function args(url: string, out: string, ...more: string[]): string[] {
  return ['--url', url, '--model', 'm', '-c', '4', '-o', out, ...more]
}

/** Calls back as soon as standard error holds a text. */
function onMessage(text: string, then: NonNullable<RunOptions['onStart']>): RunOptions {
  const onStart: RunOptions['onStart'] = (child) => {
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      const before = said.includes(text)
      said += chunk.toString()
      if (!before && said.includes(text)) then(child)
    })
  }
  return { onStart }
}

function idsOf(text: string): number[] {
  assert.ok(text.endsWith('\n'), 'the file ends in the middle of a line')
  const lines = text.trimEnd().split('\n')
  return lines.map((line) => (JSON.parse(line) as { id: number }).id).sort((a, b) => a - b)
}

const ALL = Array.from({ length: 40 }, (_, index) => index + 1)

function assertSaidOnce({ stderr }: Result, text: RegExp): void {
  const said = stderr.split('\n').filter((line) => line.endsWith('[output]'))
  assert.equal(said.length, 1, stderr)
  assert.match(said[0]!, text)
}

describe('a disk that fails for a while', { skip, concurrency: 2, timeout: 120_000 }, () => {
  for (const [name, errno, sentence] of [
    ['EIO', ERRNO.EIO, /input\/output error: answers are kept/],
    ['EDQUOT', EDQUOT, /disk quota exceeded: answers are kept/],
    ['ESTALE', ERRNO.ESTALE, /stale file handle: answers are kept/],
  ] as const) {
    test(`${name} on write is named and waited out, and nothing is lost`, async (t) => {
      const disk = newDisk(t)
      const server = await serve(t, answerWell)
      disk.room = 3000
      disk.faults.write = errno
      const result = await run('fanout-complete', args(server.url, join(disk.folder, 'out')), {
        input: prompts(40),
        ...onMessage('[output]', () => (disk.faults.write = 0)),
      })
      assert.equal(result.code, 0, result.stderr)
      assertSaidOnce(result, sentence)
      assert.match(result.stderr, /the output can be written again/)
      assert.deepEqual(idsOf(disk.content('out')), ALL)
      assert.equal(server.requests.length, 40, 'nothing was asked twice')
    })
  }

  test('EIO on fdatasync is named and waited out', async (t) => {
    const disk = newDisk(t)
    const server = await serve(t, answerWell)
    disk.faults.fsync = ERRNO.EIO
    const result = await run('fanout-complete', args(server.url, join(disk.folder, 'out')), {
      input: prompts(40),
      ...onMessage('[output]', () => (disk.faults.fsync = 0)),
    })
    assert.equal(result.code, 0, result.stderr)
    assertSaidOnce(result, /cannot sync: input\/output error/)
    assert.deepEqual(idsOf(disk.content('out')), ALL)
  })

  test('what a failed sync has dropped is written again', async (t) => {
    const disk = newDisk(t)
    // Slow, so that lines come before, in and after the syncs that fail.
    const server = await serve(t, async (request, response) => {
      await new Promise((resolve) => setTimeout(resolve, 30))
      answerWell(request, response)
    })
    disk.drops = true
    disk.faults.fsync = ERRNO.EIO
    const out = join(disk.folder, 'out')
    const result = await run('fanout-complete', args(server.url, out, '--sync', '100ms'), {
      input: prompts(40),
      ...onMessage('[output]', () => setTimeout(() => (disk.faults.fsync = 0), 300)),
    })
    assert.equal(result.code, 0, result.stderr)
    assertSaidOnce(result, /cannot sync: input\/output error/)
    assert.deepEqual(idsOf(disk.content('out')), ALL)
    assert.equal(server.requests.length, 40, 'nothing was asked twice')
  })

  for (const what of ['write', 'fsync'] as const) {
    test(`TERM while a ${what} fails for good: exit 2, and --resume asks for what is lost`, async (t) => {
      const disk = newDisk(t)
      const server = await serve(t, answerWell)
      const stats = join(newFolder(), 'stats')
      disk.room = 3000
      disk.faults[what] = ERRNO.EIO
      const out = join(disk.folder, 'out')
      const more = ['--drain', '300ms', '--stats', stats]
      const result = await run('fanout-complete', args(server.url, out, ...more), {
        input: prompts(40),
        ...onMessage('[output]', (child) => child.kill('SIGTERM')),
      })
      assert.equal(result.code, 2, result.stderr)
      assert.match(result.stderr, /out: cannot (write|sync): input\/output error \[io\]/)
      assertBalanced(JSON.parse(readFileSync(stats, 'utf8')) as Stats)
      disk.faults[what] = 0
      const resume = args(server.url, out, '--resume')
      const again = await run('fanout-complete', resume, { input: prompts(40) })
      assert.equal(again.code, 0, again.stderr)
      assert.deepEqual(idsOf(disk.content('out')), ALL)
    })
  }

  test('a file system that turns read-only in the middle: exit 2, named, the file whole', async (t) => {
    const disk = newDisk(t)
    const server = await serve(t, answerWell)
    disk.room = 3000
    disk.faults.write = ERRNO.EROFS
    const out = join(disk.folder, 'out')
    const result = await run('fanout-complete', args(server.url, out), { input: prompts(40) })
    assert.equal(result.code, 2, result.stderr)
    assert.match(result.stderr, /out: cannot write: read-only file system \[io\]/)
    const held = idsOf(disk.content('out'))
    assert.equal(new Set(held).size, held.length)
    disk.faults.write = 0
    const resume = args(server.url, out, '--resume')
    const again = await run('fanout-complete', resume, { input: prompts(40) })
    assert.equal(again.code, 0, again.stderr)
    assert.deepEqual(idsOf(disk.content('out')), ALL)
  })
})

/** A read-only file system; undefined where this user may not mount one. */
function readOnlyDisk(): { folder: string; unmount: () => void } | undefined {
  const folder = join(newFolder(), 'disk')
  mkdirSync(folder)
  const mount = (...more: string[]): boolean => spawnSync('mount', more).status === 0
  if (!mount('-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', folder)) return undefined
  writeFileSync(join(folder, 'out'), '')
  if (!mount('-o', 'remount,ro', folder)) return undefined
  return { folder, unmount: () => void spawnSync('umount', ['-l', folder]) }
}

const readOnly = readOnlyDisk()
readOnly?.unmount()

test('a read-only file system is named before anything is asked', {
  skip: readOnly ? false : 'no right to mount a file system: NOT TESTED',
}, async (t) => {
  const disk = readOnlyDisk()!
  const server = await serve(t, answerWell)
  try {
    for (const name of ['out', 'new']) {
      const out = join(disk.folder, name)
      const result = await run('fanout-complete', args(server.url, out), { input: prompts(3) })
      assert.equal(result.code, 2, result.stderr)
      assert.match(result.stderr, /cannot write: read-only file system \[io\]\n$/)
    }
    const failures = join(disk.folder, 'failures')
    const out = join(newFolder(), 'out')
    const more = args(server.url, out, '--failures', failures)
    const result = await run('fanout-complete', more, { input: prompts(3) })
    assert.equal(result.code, 2, result.stderr)
    assert.match(result.stderr, /failures: cannot write: read-only file system \[io\]\n$/)
    assert.equal(server.requests.length, 0)
    assert.ok(!existsSync(`${out}.lock`))
  } finally {
    disk.unmount()
  }
})
