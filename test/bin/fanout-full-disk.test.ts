import assert from 'node:assert/strict'
import { type ChildProcess, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startSimulator } from '../../src/simulator/server.ts'
import { newFolder, type RunOptions, run } from '../support/run.ts'

const SIZE = 256 * 1024
/** What is left on the small disk for answers, while the filler is there. */
const ROOM = 24 * 1024

/** A file system of 256 KiB; undefined where this user may not mount one. */
function smallDisk(): { folder: string; unmount: () => void } | undefined {
  const folder = join(newFolder(), 'disk')
  mkdirSync(folder)
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${SIZE}`, 'tmpfs', folder])
  if (mounted.status !== 0) return undefined
  writeFileSync(join(folder, 'filler'), Buffer.alloc(SIZE - ROOM))
  return { folder, unmount: () => void spawnSync('umount', ['-l', folder]) }
}

const probe = smallDisk()
probe?.unmount()
const skip = probe ? false : 'no right to mount a small disk: NOT TESTED'

/** Calls back as soon as standard error holds a text. */
function onMessage(text: string, then: (child: ChildProcess) => void): RunOptions['onStart'] {
  return (child) => {
    let said = ''
    child.stderr?.on('data', (chunk: Buffer) => {
      const before = said.includes(text)
      said += chunk.toString()
      if (!before && said.includes(text)) then(child)
    })
  }
}

const questions = Array.from({ length: 40 }, (_, id) => JSON.stringify({ id, prompt: `q${id}` }))

describe('a full disk', { skip, timeout: 60_000 }, () => {
  for (const how of ['-o FILE', '>> FILE']) {
    test(`${how}: answers are kept until there is room, and none is lost`, async () => {
      const disk = smallDisk()!
      const server = await startSimulator({ speed: 2000, meanTokens: 400, lengthSigma: 0 })
      const out = join(disk.folder, 'out.jsonl')
      try {
        const freed = onMessage('[output]', () => rmSync(join(disk.folder, 'filler')))
        const program = how === '-o FILE' ? {} : { shell: `exec "$0" "$@" >> '${out}'` }
        const args = how === '-o FILE' ? ['-o', out] : []
        const result = await run('fanout-complete', ['-c', '4', ...args], {
          input: `${questions.join('\n')}\n`,
          env: { OPENAI_BASE_URL: `${server.url}/v1` },
          onStart: freed!,
          ...program,
        })
        assert.equal(result.code, 0, result.stderr)
        assert.match(result.stderr, /no space left on device.*answers are kept/)
        assert.match(result.stderr, /can be written again/)
        const lines = readFileSync(out, 'utf8').trimEnd().split('\n')
        const ids = lines.map((line) => (JSON.parse(line) as { id: number }).id)
        assert.deepEqual(
          ids.sort((a, b) => a - b),
          questions.map((_, id) => id),
        )
        const { requests } = server.stats()
        assert.equal(requests.completed, 40, 'nothing was asked twice')
      } finally {
        await server.close()
        disk.unmount()
      }
    })
  }

  test('an INT meanwhile: conversations that have begun wait for the disk, and go on', async () => {
    const disk = smallDisk()!
    const server = await startSimulator({ speed: 2000, meanTokens: 400, lengthSigma: 0 })
    const out = join(disk.folder, 'out.jsonl')
    const turns = Array.from({ length: 40 }, (_, id) => `{"id":${id},"turns":["a${id}","b"]}\n`)
    try {
      const result = await run('fanout-complete', ['-c', '4', '-o', out, '--stats', '-'], {
        input: turns.join(''),
        env: { OPENAI_BASE_URL: `${server.url}/v1` },
        onStart: (child) => {
          onMessage('[output]', () => child.kill('SIGINT'))!(child)
          onMessage('being finished', () => rmSync(join(disk.folder, 'filler')))!(child)
        },
      })
      assert.equal(result.code, 130, result.stderr)
      const lines = readFileSync(out, 'utf8').trimEnd().split('\n')
      assert.ok(lines.length < 40)
      assert.equal(server.stats().requests.completed, 2 * lines.length, result.stderr)
      assert.match(result.stderr, /"discarded":0[,}]/)
    } finally {
      await server.close()
      disk.unmount()
    }
  })

  test('a signal meanwhile: exit 2 with the count that is lost, what was written is whole', async () => {
    const disk = smallDisk()!
    const server = await startSimulator({ speed: 2000, meanTokens: 400, lengthSigma: 0 })
    const out = join(disk.folder, 'out.jsonl')
    try {
      const args = ['-c', '4', '-o', out, '--drain', '1s', '--stats', '-']
      const result = await run('fanout-complete', args, {
        input: `${questions.join('\n')}\n`,
        env: { OPENAI_BASE_URL: `${server.url}/v1` },
        onStart: onMessage('[output]', (child) => child.kill('SIGTERM'))!,
      })
      assert.equal(result.code, 2, result.stderr)
      assert.match(result.stderr, /no space left on device/)
      const [, lost] = /: (\d+) answers are lost: .*\[lost\]/.exec(result.stderr) ?? []
      assert.ok(Number(lost) > 0, result.stderr)
      const [stats] = /^\{"records".*\}$/m.exec(result.stderr) ?? []
      const { unwritten, left } = JSON.parse(stats!) as Record<string, number>
      assert.equal(unwritten, Number(lost))
      assert.ok(left! >= unwritten!)
      assert.match(result.stderr, /to go on: the same command with --resume/)
      rmSync(join(disk.folder, 'filler'))
      const again = await run('fanout-complete', ['-c', '4', '-o', out, '--resume'], {
        input: `${questions.join('\n')}\n`,
        env: { OPENAI_BASE_URL: `${server.url}/v1` },
      })
      assert.equal(again.code, 0, again.stderr)
      const lines = readFileSync(out, 'utf8').trimEnd().split('\n')
      assert.equal(new Set(lines.map((line) => (JSON.parse(line) as { id: number }).id)).size, 40)
      assert.equal(lines.length, 40)
    } finally {
      await server.close()
      disk.unmount()
    }
  })

  test('the filters end at once, exit 2', async () => {
    const disk = smallDisk()!
    const big = `${Array(4000).fill('{"id":1,"text":"0123456789"}').join('\n')}\n`
    try {
      const shell = `exec "$0" "$@" > '${join(disk.folder, 'out.jsonl')}'`
      const result = await run('validate-jsonl', [], { input: big, shell })
      assert.equal(result.code, 2)
      assert.match(result.stderr, /<stdout>: cannot write: no space left on device \[io\]/)
    } finally {
      disk.unmount()
    }
  })

  test('no empty lock is left where there was no room for its text', async () => {
    const disk = smallDisk()!
    try {
      const file = join(disk.folder, 'torn.jsonl')
      writeFileSync(file, '{"id":1}\n{"id":')
      const free = Buffer.alloc(SIZE)
      try {
        writeFileSync(join(disk.folder, 'rest'), free)
      } catch {
        // It is full now.
      }
      for (const [name, ...args] of [
        ['repair-truncated', '-i', '--tail', file],
        ['fanout-complete', '--url', 'http://127.0.0.1:1/v1', '-o', join(disk.folder, 'new')],
      ]) {
        const { code } = await run(name!, args)
        assert.equal(code, 2)
      }
      assert.deepEqual(readdirSync(disk.folder).sort(), ['filler', 'rest', 'torn.jsonl'])
    } finally {
      disk.unmount()
    }
  })
})
