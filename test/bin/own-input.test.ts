import assert from 'node:assert/strict'
import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const ANSWER =
  '{"id":1,"status":"success","conversations":[{"role":"user","content":"q"},' +
  '{"role":"assistant","content":"a"}],"finish_reason":"stop"}\n'
const NOWHERE = ['--url', 'http://127.0.0.1:1/v1']

/** Each reads own.jsonl and is told to write to it as well. */
const COMMANDS: string[][] = [
  ['validate-jsonl', 'own.jsonl', '--stats', 'own.jsonl'],
  ['validate-jsonl', 'own.jsonl', '--rejects', 'own.jsonl'],
  ['repair-truncated', 'own.jsonl', '--stats', 'own.jsonl'],
  ['repair-truncated', '-i', 'own.jsonl', '--stats', 'own.jsonl'],
  ['repair-truncated', '-i', '--tail', 'own.jsonl', '--stats', 'own.jsonl'],
  ['repair-truncated', '-i', 'own.jsonl', '--removed', 'own.jsonl'],
  ['dedupe-completed', '--completed', 'other.jsonl', 'own.jsonl', '--stats', 'own.jsonl'],
  ['dedupe-completed', '--completed', 'own.jsonl', 'other.jsonl', '--stats', 'own.jsonl'],
  ['dedupe-completed', '--completed', 'o*.jsonl', 'other.jsonl', '--stats', 'own.jsonl'],
  ['extract-prompts', 'own.jsonl', '--stats', 'own.jsonl'],
  ['extract-prompts', 'own.jsonl', '--rejects', 'own.jsonl'],
  ['export-conversations', '--to', 'alpaca', 'own.jsonl', '--stats', 'own.jsonl'],
  ['export-conversations', '--to', 'alpaca', '-o', 'own.jsonl', 'other.jsonl', 'own.jsonl'],
  ['report-run', 'own.jsonl', '--html', 'own.jsonl'],
  ['report-run', 'other.jsonl', '--failures', 'own.jsonl', '--html', 'own.jsonl'],
  ['report-run', 'other.jsonl', '--trace', 'own.jsonl', '--html', 'own.jsonl'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '--stats', 'own.jsonl'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '--trace', 'own.jsonl'],
  ['fanout-complete', ...NOWHERE, 'other.jsonl', '-o', 'own.jsonl', '--stats', 'own.jsonl'],
  ['fanout-complete', ...NOWHERE, 'other.jsonl', '--failures', 'own.jsonl', '--stats', 'own.jsonl'],
  [
    'fanout-complete',
    ...NOWHERE,
    'other.jsonl',
    '--completed',
    'own.jsonl',
    '--stats',
    'own.jsonl',
  ],
]

describe('a file that is read is not written to, whatever option names it', {
  concurrency: 2,
}, () => {
  for (const [name, ...args] of COMMANDS) {
    test(`${name} ${args.filter((arg) => !NOWHERE.includes(arg)).join(' ')}`, async () => {
      const cwd = newFolder()
      for (const file of ['own.jsonl', 'other.jsonl']) writeFileSync(join(cwd, file), ANSWER)
      const { code, stderr, stdout } = await run(name!, args, { cwd })
      assert.equal(readFileSync(join(cwd, 'own.jsonl'), 'utf8'), ANSWER)
      assert.equal(code, 2)
      assert.match(stderr, /\[(same-file|usage)\]\n$/)
      assert.equal(stdout.length, 0)
    })
  }
})

/** Each is told to write two things to two.jsonl, which is there or not. */
const TWICE: string[][] = [
  ['repair-truncated', 'own.jsonl', '--removed', 'two.jsonl', '--stats', './two.jsonl'],
  ['repair-truncated', '-i', 'own.jsonl', '--removed', 'two.jsonl', '--stats', 'two.jsonl'],
  ['repair-truncated', 'own.jsonl', '--removed', 'two.jsonl', '>>'],
  ['repair-truncated', 'own.jsonl', '--stats', 'two.jsonl', '>>'],
  ['validate-jsonl', 'own.jsonl', '--rejects', 'two.jsonl', '--stats', 'two.jsonl'],
  ['validate-jsonl', 'own.jsonl', '--rejects', 'two.jsonl', '>>'],
  ['dedupe-completed', '--completed', 'none.jsonl', 'own.jsonl', '--stats', 'two.jsonl', '>>'],
  ['extract-prompts', 'own.jsonl', '--stats', 'two.jsonl', '>>'],
  ['extract-prompts', 'own.jsonl', '--rejects', 'two.jsonl', '--stats', 'two.jsonl'],
  ['export-conversations', '--to', 'alpaca', 'own.jsonl', '--stats', 'two.jsonl', '>>'],
  [
    'export-conversations',
    '--to',
    'alpaca',
    '-o',
    'two.jsonl',
    'own.jsonl',
    '--stats',
    'two.jsonl',
  ],
  ['report-run', 'own.jsonl', '--html', 'two.jsonl', '>>'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '--stats', 'two.jsonl', '>>'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '--trace', 'two.jsonl', '>>'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '--failures', 'two.jsonl', '>>'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '-o', 'two.jsonl', '--failures', 'two.jsonl'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '-o', 'two.jsonl', '--failures', 'link/two.jsonl'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '--stats', 'two.jsonl', '--trace', 'two.jsonl'],
]

test('two outputs are not one file through a link to where none is yet', async () => {
  const cwd = newFolder()
  writeFileSync(join(cwd, 'own.jsonl'), `bad\n${ANSWER}`)
  symlinkSync('xx.out', join(cwd, 'first'))
  symlinkSync('first', join(cwd, 'second'))
  for (const two of [
    ['--removed', 'xx.out', '--stats', 'first'],
    ['--removed', 'second', '--stats', 'xx.out'],
    ['--removed', 'first', '--stats', 'second'],
  ]) {
    const { code, stderr } = await run('repair-truncated', [...two, 'own.jsonl'], { cwd })
    assert.equal(code, 2)
    assert.match(stderr, /\[same-file\]\n$/)
    assert.equal(existsSync(join(cwd, 'xx.out')), false)
  }
})

describe('two outputs are not the same file', { concurrency: 2 }, () => {
  for (const [name, ...args] of TWICE) {
    for (const before of [undefined, ANSWER]) {
      test(`${name} ${args.join(' ')}, ${before === undefined ? 'new' : 'old'}`, async () => {
        const cwd = newFolder()
        writeFileSync(join(cwd, 'own.jsonl'), `bad\n${ANSWER}`)
        const two = join(cwd, 'two.jsonl')
        if (before !== undefined) writeFileSync(two, before)
        symlinkSync(cwd, join(cwd, 'link'))
        const appends = args.at(-1) === '>>'
        const stdout = appends ? openSync(two, 'a') : undefined
        const operands = appends ? args.slice(0, -1) : args
        const { code, stderr } = await run(name!, operands, {
          cwd,
          ...(stdout !== undefined && { stdout }),
        })
        if (stdout !== undefined) closeSync(stdout)
        assert.equal(code, 2)
        assert.match(stderr, /\[same-file\]\n$/)
        if (existsSync(two)) assert.equal(readFileSync(two, 'utf8'), before ?? '')
        assert.equal(readFileSync(join(cwd, 'own.jsonl'), 'utf8'), `bad\n${ANSWER}`)
      })
    }
  }
})

/** Each is told to write something to an output that cannot be, `OUT`. */
const NO_PLACE: string[][] = [
  ['validate-jsonl', 'own.jsonl', '--stats', 'OUT'],
  ['repair-truncated', 'own.jsonl', '--stats', 'OUT'],
  ['repair-truncated', '-i', 'own.jsonl', '--stats', 'OUT'],
  ['repair-truncated', '-i', '--tail', 'own.jsonl', '--stats', 'OUT'],
  ['dedupe-completed', '--completed', 'none.jsonl', 'own.jsonl', '--stats', 'OUT'],
  ['extract-prompts', 'own.jsonl', '--stats', 'OUT'],
  ['export-conversations', '--to', 'alpaca', 'own.jsonl', '--stats', 'OUT'],
  ['report-run', 'own.jsonl', '--html', 'OUT'],
  ['fanout-complete', ...NOWHERE, 'own.jsonl', '--stats', 'OUT'],
  ['fanout-complete', ...NOWHERE, '-o', 'new.jsonl', 'own.jsonl', '--stats', 'OUT'],
  ['simulate-server', '--port', '0', '--stats', 'OUT'],
]

describe('an output that cannot be written is found at the start', { concurrency: 2 }, () => {
  for (const [name, ...args] of NO_PLACE) {
    test(`${name} ${args.filter((arg) => !NOWHERE.includes(arg)).join(' ')}`, async () => {
      for (const [output, why] of [
        ['nope/out', 'no such file or directory'],
        ['own.jsonl/out', 'a part of the path is not a directory'],
        ['.', 'is a directory'],
      ]) {
        const cwd = newFolder()
        writeFileSync(join(cwd, 'own.jsonl'), `bad\n${ANSWER}`)
        const named = args.map((arg) => (arg === 'OUT' ? output! : arg))
        const { code, stderr, stdout } = await run(name!, named, { cwd })
        assert.equal(code, 2)
        assert.ok(stderr.endsWith(`: ${output}: cannot write: ${why} [io]\n`), stderr)
        assert.equal(stderr.split('\n').length, 2, stderr)
        assert.equal(stdout.length, 0)
        assert.deepEqual(readdirSync(cwd), ['own.jsonl'])
        assert.equal(readFileSync(join(cwd, 'own.jsonl'), 'utf8'), `bad\n${ANSWER}`)
      }
    })
  }
})
