import assert from 'node:assert/strict'
import { test } from 'node:test'
import { grammarProblem } from '../../src/core/json-problem.ts'

/** Line, code, and the 1-based column that --validate prints. */
const TERMINATED: [string, string | undefined, number?][] = [
  ['{"a":1}', undefined],
  ['  {"a":1} \r', undefined],
  ['12', undefined],
  ['', 'blank', 1],
  [' \t\r', 'blank', 1],
  ['{"a":1', 'truncated', 7],
  ['{"a":"x', 'truncated', 8],
  ['{"a":"x\r', 'truncated', 8],
  ['{"a":tru', 'truncated', 9],
  ['{"a":-', 'truncated', 7],
  ['[', 'truncated', 2],
  ['"\\u12', 'truncated', 6],
  ['{"a":"caf\xc3', 'utf8', 10],
  ['{"a":"caf\xc3\r', 'utf8', 10],
  ['{"a":"caf\xe9"}', 'utf8', 10],
  ['\xff', 'utf8', 1],
  ['{"a":\xe9}', 'utf8', 6],
  ['{"a":1}{"b":2}', 'multiple-values', 8],
  ['{"a":1} x', 'multiple-values', 9],
  ['"a" "b"', 'multiple-values', 5],
  ['12 34', 'multiple-values', 4],
  ['{"a":1},', 'trailing-comma', 8],
  ['{"a":1} , \r', 'trailing-comma', 9],
  ['12,', 'trailing-comma', 3],
  ['true,', 'trailing-comma', 5],
  ['{"a":1},{"b":2}', 'multiple-values', 8],
  ['{"m":2,}', 'syntax', 8],
  ['[1,]', 'syntax', 4],
  ['50%', 'syntax', 3],
  ['truex', 'syntax', 5],
  ['nullx', 'syntax', 5],
  ['1a', 'syntax', 2],
  ['<html>', 'syntax', 1],
  ['{a:1}', 'syntax', 2],
  ['"\\x"', 'syntax', 3],
  ['"\t"', 'control-char', 2],
  ['"\\\t"', 'control-char', 3],
  ['"\\u00\t"', 'control-char', 6],
  ['"a\x01b"', 'control-char', 3],
  ['"a\rb"', 'control-char', 3],
  ['"a\0b"', 'nul', 3],
  ['\0\0{"a":1}', 'nul', 1],
  ['{"a":1}\0', 'nul', 8],
  ['{"a":NaN}', 'nan', 6],
  ['[nan]', 'nan', 3],
  ['{"a":-Infinity}', 'nan', 7],
  ['Infinity', 'nan', 1],
  ['[inf]', 'nan', 2],
  ["{'a': 1}", 'python-repr', 2],
  ['{"a": True}', 'python-repr', 7],
  ['[None, 1]', 'python-repr', 2],
  ["[1, 'x']", 'python-repr', 5],
  ['{"a":1, \'b\':2}', 'python-repr', 9],
  ['True', 'syntax', 1],
]

for (const [line, code, column] of TERMINATED) {
  test(`${JSON.stringify(line)} is ${code ?? 'sound'}`, () => {
    const bytes = Buffer.from(line, 'latin1')
    const problem = grammarProblem(bytes, 0, bytes.length, true)
    assert.equal(problem?.code, code)
    if (column !== undefined) assert.equal(problem!.at + 1, column)
  })
}

test('without a line feed a bare number may be half a number, and CR is no line end', () => {
  const unterminated: [string, string | undefined][] = [
    ['12', 'truncated'],
    ['-1.5e3', 'truncated'],
    ['12 ', undefined],
    ['true', undefined],
    ['"a"', undefined],
    ['{"a":1}', undefined],
    ['{"a":"x\r', 'control-char'],
    ['{"a":1}\r', undefined],
    ['', 'blank'],
  ]
  for (const [line, code] of unterminated) {
    const bytes = Buffer.from(line)
    assert.equal(grammarProblem(bytes, 0, bytes.length, false)?.code, code, JSON.stringify(line))
  }
})
