import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { parquetReadObjects } from 'hyparquet'
import { dice } from '../support/dice.ts'
import { newFolder, run } from '../support/run.ts'

/** What each trainer asks of a row, stated as docs/trainers.md tells it, over records good and bad. */

interface Message {
  role: string
  content?: unknown
  reasoning_content?: unknown
  reasoning?: unknown
  thinking?: unknown
  tool_calls?: unknown
}
type Row = Record<string, unknown>

const RECORDS = 3000
const random = dice(6)
const roll = (sides: number): number => Math.floor(random() * sides)
const one = <T>(...choices: T[]): T => choices[roll(choices.length)]!
const maybe = (member: object): object => (roll(4) === 0 ? member : {})

const content = (): unknown =>
  roll(8) > 0
    ? `${one('Why', 'Because “so”', '\u3000x', '\\n')} ${roll(500)}`
    : one<unknown>(
        '',
        ' \n',
        '\u00a0',
        null,
        [],
        [{ type: 'text', text: 'see' }],
        7,
        { text: 'x' },
        [1],
      )

const message = (role: string): object => ({
  [one('role', 'role', 'from')]: role,
  [one('content', 'content', 'value')]: content(),
  ...maybe({ [one('reasoning', 'reasoning_content', 'thinking')]: one('hm', '', null) }),
  ...(role === 'assistant' && maybe({ tool_calls: one([], [{ id: 'c', type: 'function' }]) })),
  ...maybe({ name: 'n' }),
})

/** Mostly a conversation as it should be; else any roles in any order. */
function conversation(): object[] {
  if (roll(4) === 0) {
    const roles = ['user', 'assistant', 'system', 'tool', 'human', 'gpt', 'alien']
    return Array.from({ length: roll(6) }, () => message(one(...roles)))
  }
  const pairs = Array.from({ length: 1 + roll(3) }, () => ['user', 'assistant']).flat()
  return (roll(3) === 0 ? ['system', ...pairs] : pairs).map(message)
}

const record = (id: number): object => ({
  id: one<unknown>(id, `r${id}`),
  ...(roll(3) > 0 && { status: 'success' }),
  conversations: conversation(),
  finish_reason: one('stop', 'length'),
  ...(roll(2) === 0 && { prompt_token_ids: [1, roll(1e6)], token_ids: [2, roll(1e6)] }),
})

const isText = (value: unknown): boolean => typeof value === 'string' && value.trim() !== ''
const isParts = (value: unknown): boolean =>
  Array.isArray(value) && value.length > 0 && value.every((part) => typeof part === 'object')

function assertMembers(row: Row, members: string[]): void {
  assert.deepEqual(Object.keys(row), members)
  assert.ok(typeof row.id === 'string' && row.id !== '')
}

/** System messages first, then user and assistant in turn, the assistant last, texts with something in them. */
function assertTexts(messages: Message[], reasoning: string): void {
  const roles = messages.map(({ role }) => role).join(' ')
  assert.match(roles, /^(system )*user assistant( user assistant)*$/)
  for (const { content, ...more } of messages) {
    assert.ok(isText(content), JSON.stringify(content))
    assert.ok(!('tool_calls' in more) || (more.tool_calls as object[]).length === 0)
  }
  assertReasoning(messages, reasoning)
}

/** Reasoning is read by one name; it is a text, where there is any. */
function assertReasoning(messages: Message[], name: string): void {
  for (const message of messages as unknown as Row[]) {
    for (const other of ['reasoning', 'reasoning_content', 'thinking']) {
      if (other === name) assert.ok(!(name in message) || isText(message[name]))
      else assert.ok(!(other in message), `${other} in ${JSON.stringify(message)}`)
    }
  }
}

/** Roles of the API, the user's before the assistant's; a content is a text, parts, or null. */
function assertMessages(messages: Message[]): void {
  for (const { role, content } of messages) {
    assert.ok(['system', 'user', 'assistant', 'tool'].includes(role), role)
    const isEmpty = content === null || content === undefined || content === ''
    assert.ok(isEmpty || typeof content === 'string' || Array.isArray(content))
    if (Array.isArray(content)) assert.ok(content.length === 0 || isParts(content))
  }
  assert.equal(messages.find(({ role }) => role !== 'system')?.role, 'user')
  const last = messages.at(-1)!
  assert.equal(last.role, 'assistant')
  assert.ok(isText(last.content) || isParts(last.content) || isParts(last.tool_calls))
  assertReasoning(messages, 'reasoning_content')
}

const RULES: Record<string, (row: Row) => void> = {
  specforge(row) {
    assertMembers(row, ['id', 'status', 'conversations'])
    assert.equal(row.status, 'success')
    assertTexts(row.conversations as Message[], 'reasoning_content')
  },
  deepspec(row) {
    assertMembers(row, ['id', 'status', 'conversations'])
    assert.equal(row.status, 'success')
    assertTexts(row.conversations as Message[], 'thinking')
  },
  speculators(row) {
    assertMembers(row, ['id', 'conversations'])
    assertMessages(row.conversations as Message[])
  },
  'speculators --token-ids use'(row) {
    assertMembers(row, ['id', 'primary_id', 'input_ids', 'loss_mask', 'conversations', 'metadata'])
    const [ids, mask] = [row.input_ids as number[], row.loss_mask as number[]]
    assert.equal(ids.length, mask.length)
    assert.ok(ids.every(Number.isInteger))
    assert.match(mask.join(''), /^0+1+$/)
    assert.equal(row.id, `${String(row.primary_id)}_gen0`)
    assertMessages(row.conversations as Message[])
  },
  modelopt(row) {
    // A member `text` would win over the messages.
    assertMembers(row, ['id', 'messages'])
    assertMessages(row.messages as Message[])
  },
  messages(row) {
    assertMembers(row, ['id', 'messages'])
    assertMessages(row.messages as Message[])
  },
  alpaca({ id, instruction, input, output, system, history, ...rest }) {
    assert.deepEqual([typeof id, input, Object.keys(rest)], ['string', '', []])
    assert.ok(isText(instruction) && isText(output))
    assert.ok(system === undefined || isText(system))
    for (const pair of (history ?? []) as unknown[][]) {
      assert.ok(pair.length === 2 && pair.every(isText))
    }
  },
  'openai-batch'(row) {
    assertMembers(row, ['id', 'custom_id', 'response', 'error'])
    const { status_code, request_id, body } = row.response as Row
    assert.deepEqual([row.error, status_code, typeof request_id], [null, 200, 'string'])
    const [choice, ...others] = (body as { choices: Row[] }).choices
    assert.deepEqual([others, choice!.index], [[], 0])
    assert.ok(['stop', 'length'].includes(choice!.finish_reason as string))
    const answer = choice!.message as Message
    assert.equal(answer.role, 'assistant')
    assert.ok(isText(answer.content) || isParts(answer.content) || isParts(answer.tool_calls))
    assertReasoning([answer], 'reasoning_content')
  },
}

/** Applies the rules to a row, and names the row that breaks them. */
function check(rule: (row: Row) => void, line: string): Row {
  const row = JSON.parse(line) as Row
  try {
    rule(row)
  } catch (error) {
    throw new Error(`${(error as Error).message}: ${line}`, { cause: error })
  }
  return row
}

describe(`the rules of trainers over ${RECORDS} records, good and bad`, () => {
  const cwd = newFolder()
  const stats = (): { records: number; exported: number; left_out: number; rows: number } =>
    JSON.parse(readFileSync(join(cwd, 'stats'), 'utf8'))
  before(() => {
    const lines = Array.from({ length: RECORDS }, (_, id) => `${JSON.stringify(record(id))}\n`)
    writeFileSync(join(cwd, 'in.jsonl'), lines.join(''))
  })

  async function exported(form: string): Promise<Buffer> {
    const args = ['--stats', 'stats', '-q', '--to', ...form.split(' '), 'in.jsonl']
    const { code, stdout, stderr } = await run('export-conversations', args, { cwd })
    assert.deepEqual([code, stderr], [0, ''])
    const { records, exported, left_out } = stats()
    assert.deepEqual([records, exported + left_out], [RECORDS, RECORDS])
    // Rules that leave all out, or nothing, would try nothing.
    assert.ok(exported > RECORDS / 10 && left_out > RECORDS / 10, `${exported} exported`)
    return stdout
  }

  for (const [form, rule] of Object.entries(RULES)) {
    const more = form === 'speculators' ? ' --token-ids drop' : ''
    test(form, async () => {
      const lines = (await exported(form + more)).toString().split('\n').slice(0, -1)
      assert.equal(lines.length, stats().rows)
      for (const line of lines) check(rule, line)
    })
  }

  for (const form of ['specforge', 'messages', 'deepspec']) {
    test(`${form} --reasoning-turns: of the last answer alone`, async () => {
      const args = `${form} --reasoning-turns --only stop`
      const lines = (await exported(args)).toString().split('\n').slice(0, -1)
      assert.ok(lines.some((line) => line.includes('#turn1"')))
      for (const line of lines) {
        const row = check(RULES[form]!, line)
        const messages = (row.conversations ?? row.messages) as Message[]
        if (!/#turn\d+$/.test(row.id as string)) continue
        for (const { thinking, reasoning_content } of messages.slice(0, -1)) {
          assert.deepEqual([thinking, reasoning_content], [undefined, undefined])
        }
      }
    })
  }

  test('parquet', async () => {
    await exported('parquet -o out.parquet')
    const { buffer, byteOffset, length } = readFileSync(join(cwd, 'out.parquet'))
    const file = buffer.slice(byteOffset, byteOffset + length) as ArrayBuffer
    const rows = (await parquetReadObjects({ file })) as Row[]
    assert.equal(rows.length, stats().rows)
    for (const row of rows) {
      assertMembers(row, ['id', 'conversations'])
      const messages = (row.conversations as Message[]).map(({ reasoning_content, ...message }) =>
        reasoning_content === null || reasoning_content === undefined
          ? message
          : { ...message, reasoning_content },
      )
      assertTexts(messages as Message[], 'reasoning_content')
    }
  })
})
