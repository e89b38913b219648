import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { newFolder, run } from '../support/run.ts'

const NAME = 'export-conversations'

interface Message {
  role: string
  content: string | null | object[]
  reasoning_content?: string
  thinking?: string
}
interface Row {
  id: string
  status?: string
  conversations?: Message[]
  messages?: Message[]
}

const user = (content: string) => ({ role: 'user', content })
const assistant = (content: string | null, more: object = {}) => ({
  role: 'assistant',
  content,
  ...more,
})
const answered = (id: unknown, conversations: object[], more: object = {}): string =>
  JSON.stringify({
    id,
    status: 'success',
    conversations,
    finish_reason: 'stop',
    model: 'm',
    usage: { total_tokens: 14 },
    ...more,
  })

/** What fanout-complete writes, good and bad. */
const LINES = [
  answered(81, [user('2+2?'), assistant('4', { reasoning_content: 'Add "1\\n2".' })]),
  answered('s', [{ role: 'system', content: 'S' }, user('Q'), assistant('A', { reasoning: 'R' })]),
  answered('m', [
    user('1'),
    assistant('one', { reasoning_content: 'r1' }),
    user('2'),
    assistant('two', { reasoning_content: 'r2' }),
  ]),
  answered('cut', [user('Q2'), assistant('A', {})], { finish_reason: 'length' }),
  answered('empty', [user('Q3'), assistant('')]),
  answered('unasked', [assistant('A')]),
  answered('open', [user('Q'), assistant('A'), user('again')]),
  answered('twice', [user('2+2?'), assistant('4', { reasoning_content: 'Add "1\\n2".' })]),
  answered('tool', [
    user('Q4'),
    assistant(null, { tool_calls: [{ id: 'c', type: 'function' }] }),
    { role: 'tool', tool_call_id: 'c', content: '5' },
    assistant('5'),
  ]),
  answered('parts', [{ role: 'user', content: [{ type: 'text', text: 'see' }] }, assistant('A')]),
  JSON.stringify({ id: 'f', status: 'error', error: { code: 'timeout' }, input: {} }),
  JSON.stringify({
    id: 'batch_req_1',
    custom_id: 'b',
    response: {
      status_code: 200,
      request_id: 'r',
      body: { choices: [{ message: assistant('A'), finish_reason: 'stop' }] },
    },
    error: null,
  }),
]
const STRICT_LEFT = {
  'empty-answer': 1,
  roles: 1,
  'no-answer': 1,
  duplicate: 1,
  'not-text': 2,
  failed: 1,
  'no-question': 1,
}

async function exported(args: string[], lines: readonly string[] = LINES) {
  const cwd = newFolder()
  const args2 = ['--stats', 'stats.json', ...args]
  const result = await run(NAME, args2, { cwd, input: lines.map((line) => `${line}\n`).join('') })
  const file = join(cwd, 'stats.json')
  const stats = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : undefined
  if (stats) assert.equal(stats.records, stats.exported + stats.left_out + stats.invalid)
  const text = result.stdout.toString()
  const rows = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Row)
  return { ...result, cwd, stats, rows, text }
}

/** SpecForge's validation of a conversation, as docs/trainers.md tells it. */
function assertAlternates(messages: Message[]): void {
  const spoken = messages.filter(({ role }) => role !== 'system')
  assert.equal(
    messages.findIndex(({ role }) => role !== 'system'),
    messages.length - spoken.length,
  )
  for (const [index, { role }] of spoken.entries()) {
    assert.equal(role, index % 2 === 0 ? 'user' : 'assistant')
  }
  assert.equal(messages.at(-1)!.role, 'assistant')
  for (const { content } of messages)
    assert.ok(typeof content === 'string' && content.trim() !== '')
}

describe('the rules of trainers', () => {
  for (const form of ['specforge', 'deepspec'] as const) {
    const name = form === 'specforge' ? 'reasoning_content' : 'thinking'
    test(`${form}: an id, status success, roles alternate, assistant last, nothing empty, ${name}`, async () => {
      const { code, rows, stats } = await exported(['--to', form])
      assert.equal(code, 0)
      assert.deepEqual(
        rows.map(({ id }) => id),
        ['81', 's', 'm', 'cut'],
      )
      for (const row of rows) {
        assert.deepEqual(Object.keys(row), ['id', 'status', 'conversations'])
        assert.equal(row.status, 'success')
        assertAlternates(row.conversations!)
        for (const message of row.conversations!) {
          assert.deepEqual(
            Object.keys(message).filter((key) => !['role', 'content', name].includes(key)),
            [],
          )
        }
      }
      const reasoning = rows.map(({ conversations }) => conversations!.at(-1)![name])
      assert.deepEqual(reasoning, ['Add "1\\n2".', 'R', 'r2', undefined])
      assert.deepEqual(stats.left_out_by_reason, STRICT_LEFT)
    })
  }

  test('speculators: conversations, the assistant not first; tool calls pass', async () => {
    const { rows } = await exported(['--to', 'speculators'])
    assert.deepEqual(
      rows.map(({ id }) => id),
      ['81', 's', 'm', 'cut', 'tool', 'parts'],
    )
    for (const { conversations } of rows) {
      assert.notEqual(conversations!.find(({ role }) => role !== 'system')!.role, 'assistant')
      assert.equal(conversations!.at(-1)!.role, 'assistant')
    }
  })

  for (const form of ['modelopt', 'messages']) {
    test(`${form}: messages with at least one assistant turn`, async () => {
      const { rows } = await exported(['--to', form])
      assert.equal(rows.length, 6)
      for (const { messages } of rows) assert.ok(messages!.some(({ role }) => role === 'assistant'))
    })
  }

  test('speculators, pre-tokenised: ids and mask of one length, 1 for what was generated', async () => {
    const ids = { prompt_token_ids: [1, 22, 333], token_ids: [4, 5] }
    const lines = [answered('a', [user('Q'), assistant('A')], ids), LINES[0]!]
    const { text, stats } = await exported(['--to', 'speculators'], lines)
    assert.equal(
      text,
      '{"id":"a_gen0","primary_id":"a","input_ids":[1,22,333,4,5],"loss_mask":[0,0,0,1,1],' +
        '"conversations":[{"role":"user","content":"Q"},{"role":"assistant","content":"A"}],' +
        '"metadata":{"finish_reason":"stop","usage":{"total_tokens":14}}}\n',
    )
    assert.deepEqual(stats.left_out_by_reason, { 'no-token-ids': 1 })
    const other = await exported(['--to', 'speculators', '--token-ids', 'drop'], lines)
    assert.equal(other.rows.length, 2)
    assert.deepEqual(Object.keys(other.rows[0]!), ['id', 'conversations'])
  })

  test('what is no text, nor parts, is left out everywhere; tool calls where there is text alone', async () => {
    const call = { tool_calls: [{ id: 'c', type: 'function' }] }
    const lines = [
      answered('number', [{ role: 'user', content: 7 }, assistant('A')]),
      answered('object', [user('Q'), { role: 'assistant', content: { text: 'A' } }]),
      answered('calls', [user('Q'), assistant('A', call)]),
      answered('calls alone', [user('Q3'), { role: 'assistant', content: null, ...call }]),
      answered('no calls', [user('Q2'), assistant('A', { tool_calls: [] })]),
      '{"id":"ids","status":"success","prompt":[1,2],"text":"A","finish_reason":"stop"}',
    ]
    for (const [form, left, rows] of [
      ['messages', 3, ['calls', 'calls alone', 'no calls']],
      ['speculators', 3, ['calls', 'calls alone', 'no calls']],
      ['specforge', 5, ['no calls']],
      ['deepspec', 5, ['no calls']],
      ['alpaca', 5, ['no calls']],
    ] as const) {
      const result = await exported(['--to', form], lines)
      assert.deepEqual([result.code, result.stats.left_out_by_reason], [0, { 'not-text': left }])
      assert.deepEqual(
        result.rows.map(({ id }) => id),
        rows,
      )
    }
  })

  test('alpaca: instruction, input, output; system and history', async () => {
    const { text, code } = await exported(['--to', 'alpaca'], LINES.slice(0, 3))
    assert.equal(code, 0)
    assert.deepEqual(text.split('\n'), [
      '{"id":"81","instruction":"2+2?","input":"","output":"4"}',
      '{"id":"s","instruction":"Q","input":"","output":"A","system":"S"}',
      '{"id":"m","instruction":"2","input":"","output":"two","history":[["1","one"]]}',
      '',
    ])
  })

  test('openai-batch: lines of a batch output file; such lines pass byte for byte', async () => {
    const lines = [LINES[0]!, LINES.at(-1)!, LINES[4]!]
    const { text, rows } = await exported(['--to', 'openai-batch'], lines)
    assert.equal(text.split('\n')[1], LINES.at(-1))
    const row = rows[0]!
    assert.match(row.id, /^batch_req_[0-9a-f]{16}$/)
    const { response, custom_id, error } = row as unknown as {
      response: {
        status_code: number
        body: { choices: { message: Message; finish_reason: string }[] }
      }
      custom_id: string
      error: null
    }
    assert.deepEqual([custom_id, error, response.status_code], ['81', null, 200])
    assert.equal(response.body.choices[0]!.message.content, '4')
    assert.equal(response.body.choices[0]!.finish_reason, 'stop')
  })

  test('parquet: the rows that extract-prompts reads again', async () => {
    const { code, cwd, stats } = await exported(['--to', 'parquet', '-o', 'd.parquet'])
    assert.deepEqual([code, stats.rows], [0, 4])
    const back = await run('extract-prompts', ['-q', '--turns', 'keep', 'd.parquet'], { cwd })
    assert.deepEqual(
      back.stdout.toString().split('\n')[2],
      '{"id":"m","messages":[{"role":"user","content":"1"},{"role":"assistant","content":"one","reasoning_content":"r1"},{"role":"user","content":"2"}]}',
    )
  })
})

describe('bytes', () => {
  test('messages in the form already pass as they are written', async () => {
    const message = '{"content":"\\u0041 \\/","role":"user"}'
    const answer = '{ "role":"assistant", "content":"x" }'
    const line = `{"conversations":[${message} , ${answer}],"id":1e2,"status":"success"}`
    const { text } = await exported(['--to', 'messages'], [line])
    assert.equal(text, `{"id":"1e2","messages":[${message},${answer}]}\n`)
  })

  test('reasoning is kept, dropped, or put into the content', async () => {
    const line = [LINES[0]!]
    const dropped = await exported(['--to', 'messages', '--reasoning', 'drop'], line)
    assert.equal(
      dropped.text,
      '{"id":"81","messages":[{"role":"user","content":"2+2?"},{"role":"assistant","content":"4"}]}\n',
    )
    const inline = await exported(['--to', 'alpaca', '--reasoning', 'inline'], line)
    assert.match(inline.text, /"output":"<think>Add \\"1\\\\n2\\"\.<\/think>4"/)
    const tags = ['--to', 'messages', '--reasoning', 'inline', '--think-tags', '<t>\\n,\\n</t>']
    const own = await exported(tags, line)
    assert.equal(own.rows[0]!.messages!.at(-1)!.content, '<t>\nAdd "1\\n2".\n</t>4')
  })

  test('--reasoning-turns makes a row of each answer, with its own reasoning alone', async () => {
    const { rows, stats } = await exported(
      ['--to', 'specforge', '--reasoning-turns'],
      LINES.slice(0, 3),
    )
    assert.deepEqual(
      rows.map(({ id }) => id),
      ['81', 's', 'm#turn0', 'm#turn1'],
    )
    const reasoning = rows[3]!.conversations!.map((message) => message.reasoning_content)
    assert.deepEqual(reasoning, [undefined, undefined, undefined, 'r2'])
    assert.deepEqual([stats.exported, stats.rows], [3, 4])
  })

  test('completions become a conversation of prompt and text', async () => {
    const line = '{"id":1,"status":"success","prompt":"Once","text":" upon","finish_reason":"stop"}'
    const { text } = await exported(['--to', 'messages'], [line])
    assert.equal(
      text,
      '{"id":"1","messages":[{"role":"user","content":"Once"},{"role":"assistant","content":" upon"}]}\n',
    )
  })
})

describe('choice', () => {
  test('--only and --min-chars; duplicates stay where they are asked for', async () => {
    const { rows, stats } = await exported([
      '--to',
      'specforge',
      '--only',
      'stop',
      '--min-chars',
      '2',
    ])
    assert.deepEqual(
      rows.map(({ id }) => id),
      ['m'],
    )
    assert.equal(stats.left_out_by_reason.finish, 1)
    assert.equal(stats.left_out_by_reason['too-short'], 3)
    const all = await exported(['--to', 'specforge', '--keep-duplicates'])
    assert.ok(all.rows.some(({ id }) => id === 'twice'))
  })

  test('--only looks at every turn of a conversation', async () => {
    const of = (id: number, ...reasons: string[]): string => {
      const conversations = reasons.flatMap((_, turn) => [user(`q${id}.${turn}`), assistant('a')])
      const turns = reasons.map((finish_reason) => ({ finish_reason }))
      const finish_reason = reasons.at(-1)
      return JSON.stringify({ id, status: 'success', conversations, finish_reason, turns })
    }
    const lines = [of(1, 'stop', 'stop'), of(2, 'length', 'stop'), of(3, 'stop', 'length')]
    const { rows, stats } = await exported(['--to', 'specforge', '--only', 'stop'], lines)
    assert.deepEqual(
      rows.map(({ id }) => id),
      ['1'],
    )
    assert.equal(stats.left_out_by_reason.finish, 2)
  })

  test('--split is the same for every order, and keeps the samples of a prompt together', async () => {
    const lines = Array.from({ length: 600 }, (_, index) =>
      answered(`p${index % 200}#${Math.floor(index / 200)}`, [user(`q${index}`), assistant('a')]),
    )
    const args = ['--to', 'messages', '--split', '9:1', '--seed', '3', '-o', 'd.jsonl']
    const first = await exported(args, lines)
    const again = await exported(args, [...lines].reverse())
    const ids = (cwd: string, part: string): string[] =>
      readFileSync(join(cwd, `d.${part}.jsonl`), 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => (JSON.parse(line) as Row).id)
        .sort()
    assert.deepEqual(ids(first.cwd, 'eval'), ids(again.cwd, 'eval'))
    const [train, evaluation] = [ids(first.cwd, 'train'), ids(first.cwd, 'eval')]
    assert.deepEqual([train.length, evaluation.length], [first.stats.train, first.stats.eval])
    assert.ok(evaluation.length > 20 && evaluation.length < 120, String(evaluation.length))
    const prompts = new Set(evaluation.map((id) => id.split('#')[0]))
    assert.equal(evaluation.length, prompts.size * 3)
  })
})

describe('files', () => {
  test('a line that is no JSON or no record is named, the rest goes on, exit 1', async () => {
    const { code, stderr, rows } = await exported(
      ['-q', '--to', 'messages'],
      ['{"id":1', '{"id":2,"x":1}', LINES[0]!],
    )
    assert.deepEqual([code, rows.length], [1, 1])
    assert.match(
      stderr,
      /^export-conversations: <stdin>:1:8: .*\[truncated\]\n.*<stdin>:2:1: .*\[no-conversation\]\n$/,
    )
  })

  test('-o replaces a file when it is whole; an input that cannot be read leaves no pieces', async () => {
    const cwd = newFolder()
    writeFileSync(join(cwd, 'o.jsonl'), 'old\n')
    const same = await run(NAME, ['--to', 'messages', '-o', 'o.jsonl', 'o.jsonl'], { cwd })
    assert.equal(same.code, 2)
    assert.match(same.stderr, /the input is also the output/)
    assert.equal(readFileSync(join(cwd, 'o.jsonl'), 'utf8'), 'old\n')
    const missing = await run(NAME, ['--to', 'messages', '-o', 'o.jsonl', 'gone.jsonl'], { cwd })
    assert.equal(missing.code, 2)
    assert.match(missing.stderr, /gone.jsonl: .*\n.*nothing was written to o.jsonl\n$/)
    assert.deepEqual(readdirSync(cwd), ['o.jsonl'])
    const wrote = await run(NAME, ['-q', '--to', 'messages', '-o', 'o.jsonl'], {
      cwd,
      input: `${LINES[0]}\n`,
    })
    assert.equal(wrote.code, 0)
    assert.match(readFileSync(join(cwd, 'o.jsonl'), 'utf8'), /^\{"id":"81"/)
    assert.deepEqual(readdirSync(cwd), ['o.jsonl'])
  })

  test('usage errors', async () => {
    for (const [args, message] of [
      [[], /say what to write with --to/],
      [['--to', 'csv'], /--to takes one of/],
      [['--to', 'parquet'], /needs a file to write/],
      [['--to', 'messages', '--split', '9:1'], /needs the files to write/],
      [['--to', 'messages', '--split', '0:0', '-o', 'x'], /--split takes TRAIN:EVAL/],
      [['--to', 'alpaca', '--reasoning', 'keep'], /no place for reasoning/],
      [['--to', 'messages', '--think-tags', 'x'], /--think-tags takes/],
    ] as const) {
      const { code, stderr } = await run(NAME, [...args])
      assert.deepEqual([code, message.test(stderr)], [2, true], stderr)
    }
  })
})
