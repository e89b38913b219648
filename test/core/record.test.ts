import assert from 'node:assert/strict'
import { test } from 'node:test'
import { answerFromBody, isFlaw } from '../../src/core/answer.ts'
import { errorMessage } from '../../src/core/error-body.ts'
import { JsonScanner, PADDING } from '../../src/core/json-scan.ts'
import { KeyRule } from '../../src/core/key.ts'
import { addUsage, batchLine } from '../../src/core/output-record.ts'
import { type InputRecord, readRecord } from '../../src/core/record.ts'
import { RecordError } from '../../src/core/record-error.ts'
import { type RequestSettings, requestHash } from '../../src/core/request.ts'

function record(line: string, send: string[] = []): InputRecord {
  const text = Buffer.from(line)
  const bytes = Buffer.alloc(text.length + PADDING)
  text.copy(bytes)
  bytes[text.length] = 0x0a
  const scanner = new JsonScanner()
  scanner.use(bytes)
  const rules = {
    key: new KeyRule(),
    promptField: undefined,
    send: send.map((name) => Buffer.from(name)),
  }
  return readRecord(scanner, bytes, { start: 0, end: text.length }, rules)
}

const SETTINGS: RequestSettings = {
  endpoint: 'chat',
  model: 'm',
  system: undefined,
  stream: true,
  historyReasoning: 'drop' as const,
  parameters: new Map(),
}

function hash(line: string, settings: Partial<RequestSettings> = {}, send: string[] = []): string {
  return requestHash(record(line, send), { ...SETTINGS, ...settings })
}

test('the hash is of what is asked: spelling, streaming and other members change nothing', () => {
  const one = hash('{"id":1,"messages":[{"role":"user","content":"é"}]}')
  assert.match(one, /^[0-9a-f]{16}$/)
  assert.equal(hash('{"messages" : [ {"content":"\\u00e9","role":"user"} ],"id":2,"x":3}'), one)
  assert.equal(hash('{"id":1,"prompt":"é"}'), one)
  assert.equal(hash('{"id":1,"turns":["\\u00e9"]}', { stream: false }), one)
})

test('every change of the question changes it', () => {
  const line = '{"id":1,"turns":["a","b"],"tools":[1]}'
  const all = [
    hash(line),
    hash(line, { model: 'n' }),
    hash(line, { system: 's' }),
    hash(line, { parameters: new Map([['seed', '1']]) }),
    hash(line, { parameters: new Map([['seed', '1.0']]) }),
    hash(line, {}, ['tools']),
    hash('{"id":1,"turns":["a","c"]}'),
    hash('{"id":1,"turns":["a"]}'),
    hash('{"id":1,"prompt":"a"}', { endpoint: 'completions' }),
    hash('{"id":1,"url":"/v1/x","body":{"a":1}}'),
    hash('{"id":1,"url":"/v1/x","body":{"a":1.0}}'),
  ]
  assert.equal(new Set(all).size, all.length)
  const body = '{"id":1,"url":"/v1/x","body":{"stream":false,"stream_options":{},"a":1}}'
  assert.equal(hash(body), all[9])
})

test('members are told apart by their decoded names, and the last one counts', () => {
  const odd = record('{"\\u0069d":1,"prompt":"a","prompt":"b","x":"\\/"}')
  assert.equal(odd.idToken, '1')
  assert.deepEqual(odd.asks, ['"b"'])
  assert.ok(odd.rest.endsWith('"x":"\\/"}'))
  assert.throws(() => record('{"id":1}'), RecordError)
})

test('usages are added member by member', () => {
  const details = (n: number): object => ({
    prompt_tokens: n,
    completion_tokens_details: { reasoning_tokens: n },
    note: 'x',
    cached: null,
  })
  assert.deepEqual(addUsage(details(1) as never, details(2) as never), details(3))
  assert.deepEqual(addUsage(undefined, details(2) as never), details(2))
  assert.equal(addUsage(undefined, undefined), undefined)
})

test('a batch answer is one line, its body byte for byte', () => {
  const line = batchLine(
    record('{"custom_id":"a\\/","url":"/v1/x","body":{}}'),
    200,
    'r"1',
    '\r\n{"a":1.0,\r\n"b":"\\n"}\n',
  )
  assert.ok(
    line.includes(
      '"custom_id":"a\\/","response":{"status_code":200,"request_id":"r\\"1","body":{"a":1.0,  "b":"\\n"}},"error":null}\n',
    ),
    line,
  )
  assert.equal(line.indexOf('\n'), line.length - 1)
})

test('errors in their forms, and bodies that are no answer', () => {
  assert.match(errorMessage('{"error":{"message":"a"}}')!, /a/)
  assert.match(errorMessage('{"error":"b"}')!, /b/)
  assert.match(errorMessage('{"object":"error","message":"c"}')!, /c/)
  assert.equal(errorMessage('{"error":null}'), undefined)
  assert.equal(errorMessage('<html>'), undefined)
  const codes = [
    '',
    'null',
    '1',
    '[]',
    '"x"',
    '{}',
    '{"choices":null}',
    '{"choices":[null]}',
    '{"choices":[]}',
    '{"error":{}}',
  ].map((body) => {
    const answer = answerFromBody(body)
    return isFlaw(answer) ? answer.code : 'answer'
  })
  const none = ['not-json', 'not-json', 'not-json', 'not-json', 'not-json']
  assert.deepEqual(codes, [
    ...none,
    'no-choices',
    'no-choices',
    'no-choices',
    'no-choices',
    'in-band-error',
  ])
})
