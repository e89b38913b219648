import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { command as dedupe } from '../../bin/dedupe-completed.ts'
import { command as repair } from '../../bin/repair-truncated.ts'
import { command as validate } from '../../bin/validate-jsonl.ts'
import type { Command } from '../../src/cli/command.ts'
import {
  type Case,
  inputs,
  loadCases,
  messages,
  type Problem,
  prepare,
  removedHex,
  repaired,
} from '../support/cases.ts'
import { newFolder, pieces, type Result, run, runInProcess } from '../support/run.ts'

const READ_SIZES = [1, 2, 3, 7, 4096, 65536]

/** Cases of some hundred megabytes, run once, as processes, where this variable is set. */
const HUGE = new Set(['51-huge-line', '54-dedupe-2pow24'])
const runHuge = process.env.CI !== undefined || process.env.HUGE_CASES !== undefined

/** A longer file is read by the byte from a pipe alone: each read of a file costs 20 µs. */
const SMALL = 20_000

/** A still longer one is not read by the byte. */
const LARGE = 100_000

interface Way {
  name: string
  readSize: number
  /** Runs a command over the case's files, given this way. */
  run(command: Command, args: string[]): Promise<Result>
}

for (const spec of loadCases()) {
  const huge = HUGE.has(spec.name)
  const skip = huge && !runHuge ? 'SKIPPED: huge; HUGE_CASES=1 or CI=1 runs it' : false
  describe(spec.name, { skip }, () => {
    const folder = skip === false ? prepare(spec) : undefined
    const missing = folder === undefined ? `SKIPPED: ${spec.generator} needs a missing tool` : false
    const options = { skip: missing, concurrency: true }
    test('as processes', options, () => asProcesses(spec, folder!))
    if (huge) return
    test('at every read size, from a file, a pipe and gzip', options, () => everyWay(spec, folder!))
    if (spec.repair && spec.input === 'input.jsonl') {
      test('in place', options, () => inPlace(spec, folder!))
    }
  })
}

async function asProcesses(spec: Case, folder: string): Promise<void> {
  const files = inputs(spec, folder)
  const validated = await run('validate-jsonl', ['-q', ...files], { cwd: folder })
  checkProblems(spec, folder, validated)
  if (spec.repair !== undefined) {
    const args = ['--removed', 'removed.out', ...files]
    const result = await run('repair-truncated', args, { cwd: folder })
    checkRepaired(spec, folder, result, join(folder, 'removed.out'))
    rmSync(join(folder, 'removed.out'), { force: true })
  }
  if (spec.dedupe !== undefined) {
    const args = [...spec.dedupe.args, spec.dedupe.stdin]
    checkDeduped(spec, folder, await run('dedupe-completed', args, { cwd: folder }))
  }
}

async function everyWay(spec: Case, folder: string): Promise<void> {
  for (const way of ways(spec, folder)) {
    await checkWay(spec, folder, way).catch((error: unknown) => {
      throw new Error(`${way.name}, read size ${way.readSize}`, { cause: error })
    })
  }
}

async function checkWay(spec: Case, folder: string, way: Way): Promise<void> {
  checkProblems(spec, folder, await way.run(validate, []))
  if (spec.repair !== undefined) {
    const removed = join(newFolder(), 'removed')
    checkRepaired(spec, folder, await way.run(repair, ['--removed', removed]), removed)
  }
  if (spec.dedupe !== undefined && way.name === 'file') {
    const args = spec.dedupe.args.map((arg) => (arg.endsWith('.jsonl') ? join(folder, arg) : arg))
    const operand = join(folder, spec.dedupe.stdin)
    const sized = ['--read-size', String(way.readSize), ...args, operand]
    checkDeduped(spec, folder, await runInProcess(dedupe, sized))
  }
}

function* ways(spec: Case, folder: string): Generator<Way, void, void> {
  const paths = inputs(spec, folder).map((name) => join(folder, name))
  const total = paths.reduce((sum, path) => sum + statSync(path).size, 0)
  const packed = paths.map((path, index) => {
    const file = join(folder, `${index}.gz`)
    writeFileSync(file, gzipSync(readFileSync(path)))
    return file
  })
  for (const readSize of READ_SIZES) {
    if (total > LARGE && readSize < 7) continue
    const sized = ['--read-size', String(readSize)]
    const over = (files: string[]) => (command: Command, args: string[]) =>
      runInProcess(command, [...sized, ...args, ...files])
    if (total <= SMALL || readSize >= 4096) yield { name: 'file', readSize, run: over(paths) }
    if (spec.input === 'input.jsonl' && (total <= SMALL || readSize >= 7)) {
      yield { name: 'gzip', readSize, run: over(packed) }
    }
    if (paths.length > 1) continue
    const input = pieces(readFileSync(paths[0]!), total <= SMALL ? readSize : 4096)
    yield {
      name: 'pipe',
      readSize,
      run: (command, args) => runInProcess(command, [...sized, ...args], { input }),
    }
  }
}

function checkProblems(spec: Case, folder: string, result: Result): void {
  const lines = readFileSync(join(folder, spec.input))
  const last = (): number => lines.filter((byte) => byte === 0x0a).length + 1
  const place = ({ line, code }: Problem): Problem => ({
    line: line === 'last' ? last() : line,
    code,
  })
  const { exit, problems, warnings = [] } = spec.validate
  const found = messages(result.stderr)
  assert.deepEqual(found.problems, problems.map(place), result.stderr)
  if (!result.stderr.includes('warning')) assert.ok(warnings.length === 0 || found.warnings)
  else assert.deepEqual(found.warnings, warnings.map(place))
  assert.equal(result.code, exit)
}

function checkRepaired(spec: Case, folder: string, result: Result, removed: string): void {
  const { exit, removed_hex } = spec.repair!
  const expected = repaired(spec, folder)
  assert.equal(result.code, exit, result.stderr)
  assert.ok(result.stdout.equals(expected), `wrote ${result.stdout.length} other bytes`)
  if (removed_hex !== undefined) assert.deepEqual(removedHex(removed), removed_hex)
}

function checkDeduped(spec: Case, folder: string, result: Result): void {
  const { exit, stdout, stdout_tail } = spec.dedupe!
  assert.equal(result.code, exit, result.stderr)
  if (stdout !== undefined) {
    assert.equal(result.stdout.toString(), readFileSync(join(folder, stdout), 'utf8'))
  }
  if (stdout_tail !== undefined) {
    const input = readFileSync(join(folder, spec.dedupe!.stdin)).subarray(-100_000).toString()
    const tail = input.split('\n').slice(-stdout_tail - 1)
    assert.deepEqual(result.stdout.toString().split('\n'), tail)
  }
}

/** The same through -i: files that are refused or clean stay the very same files. */
async function inPlace(spec: Case, folder: string): Promise<void> {
  const before = readFileSync(join(folder, spec.input))
  const expected = spec.repair!.refused ? before : repaired(spec, folder)
  const { exit, removed_hex } = spec.repair!
  const file = join(newFolder(), 'file.jsonl')
  if (inputs(spec, folder).length > 1) return
  writeFileSync(file, before)
  const { ino, mtimeMs } = statSync(file)
  const result = await runInProcess(repair, ['-i', file])
  assert.equal(result.code, exit, result.stderr)
  assert.ok(readFileSync(file).equals(expected))
  if (removed_hex !== undefined) assert.deepEqual(removedHex(`${file}.removed.jsonl`), removed_hex)
  if (expected.equals(before)) {
    const after = statSync(file)
    assert.deepEqual([after.ino, after.mtimeMs], [ino, mtimeMs])
  }
  const again = await runInProcess(repair, ['-i', file])
  if (!spec.repair!.refused) assert.equal(again.code, 0, again.stderr)
  assert.ok(readFileSync(file).equals(expected))
}
