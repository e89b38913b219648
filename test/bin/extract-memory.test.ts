import assert from 'node:assert/strict'
import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type BlendRow, blendParquet } from '../support/parquet.ts'
import { newFolder, run } from '../support/run.ts'

const ROWS = 1_000_000
/** Megabytes that a million rows may take. */
const MOST = 300

/** Prints the peak of the process's resident memory at its end; maxRSS would be its parent's too. */
const PEAK = `
import { readFileSync } from 'node:fs'
process.on('exit', () => process.stderr.write(/VmHWM.*/.exec(readFileSync('/proc/self/status'))[0]))
`
const skip = existsSync('/proc/self/status')
  ? false
  : 'the peak is read from /proc, which Linux has'

const folder = newFolder()

/** Runs it on a file of a million rows; gives what it wrote and its peak in megabytes. */
async function extract(args: string[]): Promise<{ lines: Buffer; peak: number }> {
  const output = join(folder, 'out')
  const stdout = openSync(output, 'w')
  const env = {
    NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(PEAK)}`,
    TMPDIR: folder,
  }
  const { code, stderr } = await run('extract-prompts', ['-q', ...args], {
    cwd: folder,
    stdout,
    env,
  })
  closeSync(stdout)
  assert.equal(code, 0, stderr)
  return { lines: readFileSync(output), peak: Number(/VmHWM:\s*(\d+) kB/.exec(stderr)![1]) / 1000 }
}

function countLines(bytes: Buffer): number {
  let count = 0
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count++
  return count
}

function writeRows(file: string, row: (index: number) => string): void {
  const fd = openSync(join(folder, file), 'w')
  for (let from = 0; from < ROWS; from += 10_000) {
    writeSync(fd, Array.from({ length: 10_000 }, (_, index) => `${row(from + index)}\n`).join(''))
  }
  closeSync(fd)
}

describe('a million rows take under 300 MB of memory', { skip }, () => {
  before(() => {
    writeRows('short.jsonl', (index) => `{"prompt":"x${index}"}`)
    const rows: BlendRow[] = Array.from({ length: 10_000 }, (_, index) => ({
      conversations: [
        { from: 'human', value: `${index} ${'why is it so? '.repeat(index % 20)}` },
        { from: 'gpt', value: `${index} ${'because of that. '.repeat(index % 30)}` },
      ],
      source: 'metamath',
    }))
    const file = blendParquet(rows, { rowGroup: 10_000, times: ROWS / rows.length })
    writeFileSync(join(folder, 'd.parquet'), file)
  })
  after(() => rmSync(folder, { recursive: true, force: true }))

  for (const [args, records] of [
    [['short.jsonl'], ROWS],
    [['d.parquet'], ROWS],
    [['--shuffle', '7', 'short.jsonl'], ROWS],
    [['--shuffle', '7', 'd.parquet'], ROWS],
    [['--shuffle', '7', '--limit', '200000', 'short.jsonl'], 200_000],
    [['--shuffle', '7', '--limit', '100000', 'd.parquet'], 100_000],
  ] as const) {
    test(args.join(' '), async () => {
      const { lines, peak } = await extract([...args])
      assert.equal(countLines(lines), records)
      assert.ok(peak > 0 && peak < MOST, `${peak} MB`)
    })
  }
})
