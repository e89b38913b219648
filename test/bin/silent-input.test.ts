import assert from 'node:assert/strict'
import { type ChildProcess, execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { prompts } from '../support/fanout.ts'
import { newFolder, type Result, run } from '../support/run.ts'
import { answerWell, serve } from '../support/servers.ts'

/** Milliseconds after which a process that no signal ends is killed, so that the test tells of it. */
const HANGS = 10_000

/** What a writer gives who has the pipe open and writes nothing, or nothing more. */
async function* silence(before = ''): AsyncGenerator<Uint8Array, void, void> {
  if (before !== '') yield Buffer.from(before)
  await new Promise(() => {})
  yield Buffer.alloc(0)
}

/**
 * Resolves when the process has its own handlers of signals, and had the time to begin to read. Node
 * itself catches INT and TERM from its start.
 */
async function isUp({ pid }: ChildProcess): Promise<void> {
  const HUP = 1n
  for (let caught = 0n; (caught & HUP) === 0n; ) {
    await sleep(50)
    const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => undefined)
    if (status === undefined) break
    caught = BigInt(`0x${/^SigCgt:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  }
  await sleep(400)
}

/** Runs a binary that has nothing more to read than `before`, and sends it one signal. */
async function signalled(
  name: string,
  args: string[],
  signal: NodeJS.Signals,
  cwd = newFolder(),
  before = '',
): Promise<Result> {
  return run(name, args, {
    cwd,
    input: silence(before),
    onStart: (child) => {
      const kill = setTimeout(() => child.kill('SIGKILL'), HANGS)
      void once(child, 'exit').then(() => clearTimeout(kill))
      void isUp(child).then(() => child.kill(signal))
    },
  })
}

function fifo(folder: string): string {
  const path = join(folder, 'fifo')
  execFileSync('sh', ['-c', 'mkfifo "$0"', path])
  return path
}

const BINARIES: [string, string[]][] = [
  ['validate-jsonl', []],
  ['repair-truncated', []],
  ['dedupe-completed', ['--completed', 'none']],
  ['extract-prompts', []],
  ['export-conversations', ['--to', 'messages']],
  ['report-run', []],
  ['fanout-complete', ['--url', 'http://127.0.0.1:9/v1']],
  ['fanout-complete', ['--url', 'http://127.0.0.1:9/v1', '-o', 'out']],
]

describe('a signal before the first byte of input', { concurrency: 2 }, () => {
  for (const [name, args] of BINARIES) {
    const line = [name, ...args.filter((word) => !word.includes(':'))].join(' ')
    test(`standard input is an open pipe: ${line}`, async () => {
      const { code, stderr } = await signalled(name, args, 'SIGINT')
      assert.equal(code, 130, stderr)
    })

    test(`a FIFO that nobody has opened to write: ${line}`, async () => {
      const folder = newFolder()
      const { code, stderr } = await signalled(name, [...args, fifo(folder)], 'SIGTERM', folder)
      assert.equal(code, 143, stderr)
    })
  }

  test('HUP, with the counts', async () => {
    const folder = newFolder()
    const { code } = await signalled('validate-jsonl', ['--stats', 's'], 'SIGHUP', folder)
    assert.equal(code, 129)
    assert.equal(JSON.parse(readFileSync(join(folder, 's'), 'utf8')).lines, 0)
  })

  test('while dedupe-completed reads what is completed, with the counts so far', async () => {
    const folder = newFolder()
    fifo(folder)
    writeFileSync(join(folder, 'done'), '{"id":1,"status":"success"}\n')
    const files = ['--completed', 'done', '--completed', 'fifo', '--stats', 's']
    const { code } = await signalled('dedupe-completed', files, 'SIGTERM', folder)
    assert.equal(code, 143)
    const stats = JSON.parse(readFileSync(join(folder, 's'), 'utf8'))
    assert.deepEqual([stats.records, stats.completed_files.completed], [0, 1])
  })

  test('repair-truncated early in a file: the records so far are written, and counted', async () => {
    const folder = newFolder()
    const lines = '{"id":1}\n{"id":2}\n{"id":\n{"id":3}\n'
    const options = ['--stats', 's', '--removed', 'r']
    const result = await signalled('repair-truncated', options, 'SIGTERM', folder, lines)
    assert.equal(result.code, 143)
    assert.equal(result.stdout.toString(), '{"id":1}\n{"id":2}\n{"id":3}\n')
    const {
      files,
      lines: read,
      kept,
      removed,
    } = JSON.parse(readFileSync(join(folder, 's'), 'utf8'))
    assert.deepEqual([files, read, kept, removed], [1, 4, 3, 1])
    assert.match(readFileSync(join(folder, 'r'), 'utf8'), /^\{.*\}\n$/)
  })

  for (const options of [[], ['--shuffle', '1'], ['--shuffle', '1', '--limit', '1']]) {
    test(`extract-prompts ${options.join(' ')}: the counts of the rows so far balance`, async () => {
      const folder = newFolder()
      const rows = '{"a":1}\n{"a":2}\n'
      const prompts = '{"prompt":"a"}\n{"prompt":"b"}\n{"no":1}\n'
      for (const input of [rows, prompts, rows + prompts]) {
        const args = [...options, '--stats', 's', '--rejects', 'r']
        const { code } = await signalled('extract-prompts', args, 'SIGTERM', folder, input)
        assert.equal(code, 143)
        const counts = JSON.parse(readFileSync(join(folder, 's'), 'utf8'))
        assert.equal(counts.rows, input.split('\n').length - 1)
        assert.equal(counts.rows, counts.prompts + counts.rejected + counts.left_out)
      }
      assert.equal(readFileSync(join(folder, 'r'), 'utf8').split('\n').length - 1, 6)
    })
  }

  for (const [name, args] of [
    ['dedupe-completed', ['--completed', 'fifo']],
    ['fanout-complete', ['--url', 'http://127.0.0.1:9/v1', '-o', 'out', '--completed', 'fifo']],
    ['report-run', ['--failures', 'fifo', 'in']],
  ] as const) {
    test(`a FIFO beside the input: ${name} ${args.join(' ')}`, async () => {
      const folder = newFolder()
      fifo(folder)
      writeFileSync(join(folder, 'in'), '{"prompt":"q"}\n')
      const { code, stderr } = await signalled(name, [...args], 'SIGINT', folder)
      assert.equal(code, 130, stderr)
    })
  }
})

describe('a signal before an output that is a FIFO has a reader', { concurrency: 2 }, () => {
  const fanout = ['--url', 'http://127.0.0.1:9/v1', 'empty']
  for (const [name, args] of [
    ['fanout-complete', [...fanout, '-o', 'fifo']],
    ['fanout-complete', [...fanout, '--failures', 'fifo']],
    ['fanout-complete', [...fanout, '--trace', 'fifo']],
    ['fanout-complete', [...fanout, '--stats', 'fifo']],
    ['validate-jsonl', ['--stats', 'fifo', 'empty']],
    ['export-conversations', ['--to', 'messages', '-o', 'fifo', 'empty']],
  ] as const) {
    for (const [signal, code] of [
      ['SIGINT', 130],
      ['SIGTERM', 143],
    ] as const) {
      test(`${signal}: ${name} ${args.join(' ')}`, async () => {
        const folder = newFolder()
        fifo(folder)
        writeFileSync(join(folder, 'empty'), '')
        const result = await signalled(name, [...args], signal, folder)
        assert.equal(result.code, code, result.stderr)
      })
    }
  }
})

test('a FIFO that gets a reader late has all that is written to it', async (t) => {
  const server = await serve(t, answerWell)
  const folder = newFolder()
  const path = fifo(folder)
  const input = prompts(3000)
  for (const option of ['-o', '--stats']) {
    let read: Promise<string> | undefined
    const args = ['--url', server.url, '--model', 'm', option, path]
    const result = await run('fanout-complete', args, {
      input,
      onStart: (child) => void isUp(child).then(() => (read = readFile(path, 'utf8'))),
    })
    assert.equal(result.code, 0, result.stderr)
    const text = await read!
    if (option === '-o') assert.equal(linesOf(text).length, 3000)
    else assert.equal(JSON.parse(text).answered, 3000)
  }
})

/** Whole lines of JSON. */
function linesOf(text: string): unknown[] {
  assert.ok(text.endsWith('\n'))
  return text
    .slice(0, -1)
    .split('\n')
    .map((line) => JSON.parse(line) as unknown)
}

test('a FIFO is read until its last writer has gone, however late they come', async () => {
  const folder = newFolder()
  const path = fifo(folder)
  const result = await run('validate-jsonl', [path], {
    onStart: (child) => {
      void isUp(child).then(async () => {
        const writer = await open(path, 'w')
        await writer.write('{"a":')
        await sleep(100)
        await writer.write('1}\n')
        await writer.close()
      })
    },
  })
  assert.deepEqual([result.code, result.stdout.toString()], [0, '{"a":1}\n'])
})
