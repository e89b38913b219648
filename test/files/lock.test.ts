import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readFileSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { systemClock } from '../../src/cli/system-clock.ts'
import { expandGlob } from '../../src/files/glob.ts'
import { FileLock } from '../../src/files/lock.ts'
import { newFolder } from '../support/run.ts'

const never = { clock: systemClock(), onWatch: (): void => assert.fail('nothing is to be watched') }

describe('the lock', () => {
  test('is beside the file, names its holder, and is gone when released', async () => {
    const file = join(newFolder(), 'out')
    const lock = await FileLock.take(file, never)
    const holder = JSON.parse(readFileSync(`${file}.lock`, 'utf8')) as { host: string; pid: number }
    assert.deepEqual([holder.host, holder.pid], [hostname(), process.pid])
    await assert.rejects(FileLock.take(file, never), /another run writes this file: process \d+/)
    lock.release()
    assert.ok(!existsSync(`${file}.lock`))
    const again = await FileLock.take(file, never)
    again.release()
  })

  test('of a dead process of this host is taken over at once', async () => {
    const file = join(newFolder(), 'out')
    const child = spawn(process.execPath, ['-e', ''])
    await once(child, 'exit')
    writeFileSync(`${file}.lock`, JSON.stringify({ host: hostname(), pid: child.pid, since: 'x' }))
    const lock = await FileLock.take(file, never)
    lock.release()
  })

  test('without a holder that could be looked up is watched, and taken when it stands still', async () => {
    for (const text of [
      `{"host":"${hostname()}"}`,
      '{"pid":1}',
      'null',
      '',
      '{"host":"h","pid":-1}',
    ]) {
      const file = join(newFolder(), 'out')
      writeFileSync(`${file}.lock`, text)
      const before = new Date(Date.now() - 125_000)
      utimesSync(`${file}.lock`, before, before)
      const watched: string[] = []
      const onWatch = (holder: string): void => void watched.push(holder)
      const lock = await FileLock.take(file, { clock: systemClock(3000), onWatch })
      assert.match(
        watched.join(),
        /^an unknown process .*empty or damaged, touched 2 m \d s ago\)$/,
      )
      lock.release()
      assert.ok(!existsSync(`${file}.lock`))
    }
  })

  test('cannot be taken where something else has its name', async () => {
    const file = join(newFolder(), 'out')
    mkdirSync(`${file}.lock`)
    await assert.rejects(FileLock.take(file, never), /out\.lock is a directory.*remove it/)
    const other = join(newFolder(), 'out')
    symlinkSync('nowhere', `${other}.lock`)
    await assert.rejects(FileLock.take(other, never), /out\.lock is no file.*remove it/)
  })

  test('cannot be taken where there is no folder', async () => {
    await assert.rejects(FileLock.take(join(newFolder(), 'no', 'out'), never), /cannot write/)
  })
})

test('globs: sorted, dots only where written, a name that exists as it is', async () => {
  const folder = newFolder()
  mkdirSync(join(folder, 'sub'))
  for (const name of ['b.jsonl', 'a.jsonl', '.c.jsonl', 'd[1].jsonl', 'x+y', 'sub/a.jsonl']) {
    writeFileSync(join(folder, name), '')
  }
  const of = async (pattern: string): Promise<string[]> =>
    (await expandGlob(join(folder, pattern))).map((path) => path.slice(folder.length + 1))
  assert.deepEqual(await of('*.jsonl'), ['a.jsonl', 'b.jsonl', 'd[1].jsonl'])
  assert.deepEqual(await of('.*.jsonl'), ['.c.jsonl'])
  assert.deepEqual(await of('?.jsonl'), ['a.jsonl', 'b.jsonl'])
  assert.deepEqual(await of('[!a].jsonl'), ['b.jsonl'])
  assert.deepEqual(await of('[a-b].jsonl'), ['a.jsonl', 'b.jsonl'])
  assert.deepEqual(await of('d[1].jsonl'), ['d[1].jsonl'])
  assert.deepEqual(await of('s*/*'), ['sub/a.jsonl'])
  assert.deepEqual(await of('x+*'), ['x+y'])
  assert.deepEqual(await of('none*'), [])
  assert.deepEqual(await of('missing'), ['missing'])
})
