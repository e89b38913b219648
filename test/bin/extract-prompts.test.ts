import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { type BlendRow, blendParquet, parquet } from '../support/parquet.ts'
import { newFolder, run } from '../support/run.ts'

const NAME = 'extract-prompts'

/** Runs it in a new folder with these files. */
async function extract(args: string[], files: Record<string, string | Uint8Array> = {}) {
  const cwd = newFolder()
  for (const [name, bytes] of Object.entries(files)) writeFileSync(join(cwd, name), bytes)
  const result = await run(NAME, args, { cwd })
  return { ...result, cwd, lines: result.stdout.toString().split('\n').slice(0, -1) }
}

function messagesOf(stderr: string): string[] {
  return stderr.split('\n').filter((line) => line.includes('['))
}

const turn = (from: string, value: string) => ({ from, value })
const blend = (index: number): BlendRow => ({
  conversations: [turn('human', `q${index} "é\n\u0001`), turn('gpt', `a${index}`)],
  source: index % 2 ? 'metamath' : 'ultrachat',
})

describe('shapes', () => {
  const shapes: [name: string, row: string, expected: string][] = [
    ['text', '{"id":1.0,"prompt":"Q"}', '{"id":1.0,"prompt":"Q"}'],
    ['question', '{"question_id":81,"question":"Q"}', '{"id":81,"prompt":"Q"}'],
    ['Alpaca', '{"instruction":"Do","input":""}', '{"id":"d.jsonl:1","prompt":"Do"}'],
    [
      'Alpaca with input',
      '{"id":9007199254740993,"instruction":"Do","input":"t\\u0068is"}',
      '{"id":9007199254740993,"prompt":"Do\\n\\nt\\u0068is"}',
    ],
    [
      'OpenOrca',
      '{"id":"a","system_prompt":"S","question":"Q"}',
      '{"id":"a","messages":[{"role":"system","content":"S"},{"role":"user","content":"Q"}]}',
    ],
    ['turns', '{"id":1,"turns":["A","B"]}', '{"id":1,"prompt":"A"}'],
    ['token ids', '{"id":1,"prompt":[1, 2]}', '{"id":1,"prompt":[1, 2]}'],
    [
      'ShareGPT',
      '{"id":1,"conversations":[{"from":"system","value":"S"},{"from":"human","value":"Q"},{"from":"gpt","value":"A"}]}',
      '{"id":1,"messages":[{"role":"system","content":"S"},{"role":"user","content":"Q"}]}',
    ],
    [
      'conversation of role and content',
      '{"id":1,"conversation":[{"content":"Q","role":"user"}]}',
      '{"id":1,"messages":[{"content":"Q","role":"user"}]}',
    ],
    [
      'messages that a data set labelled',
      '{"id":1,"messages":[{"role":"user","content":"Q","country":"FR","name":"n"}]}',
      '{"id":1,"messages":[{"role":"user","content":"Q","name":"n"}]}',
    ],
    [
      'UltraChat of texts',
      '{"id":1,"data":["Q","A","R"]}',
      '{"id":1,"messages":[{"role":"user","content":"Q"}]}',
    ],
    [
      'Magpie',
      '{"uuid":"m","instruction":"Q","response":"A","conversations":[{"from":"human","value":"Q"}]}',
      '{"id":"m","messages":[{"role":"user","content":"Q"}]}',
    ],
    [
      'image parts',
      '{"id":1,"messages":[{"role":"user","content":[ {"type":"image_url","image_url":{"url":"u"}} ]}]}',
      '{"id":1,"messages":[{"role":"user","content":[ {"type":"image_url","image_url":{"url":"u"}} ]}]}',
    ],
    ['an escaped key', '{"id":1,"pr\\u006fmpt":"Q"}', '{"id":1,"prompt":"Q"}'],
  ]
  for (const [name, row, expected] of shapes) {
    test(name, async () => {
      const { code, lines, stderr } = await extract(['-q', 'd.jsonl'], { 'd.jsonl': `${row}\n` })
      assert.deepEqual([code, stderr, lines], [0, '', [expected]])
    })
  }
})

describe('--turns', () => {
  const row = `${JSON.stringify({
    id: 's',
    messages: [
      { role: 'system', content: 'S' },
      { role: 'user', content: 'Q1' },
      { role: 'assistant', content: null, tool_calls: [{ id: 'c', type: 'function' }] },
      { role: 'tool', content: '5', tool_call_id: 'c' },
      { role: 'user', content: 'Q2' },
      { role: 'assistant', content: 'A2' },
    ],
  })}\n`

  test('all asks every user turn anew, the system message beside them', async () => {
    const { lines } = await extract(['--turns', 'all', 'd'], { d: row })
    assert.deepEqual(lines, ['{"id":"s","system":"S","turns":["Q1","Q2"]}'])
  })

  test('keep passes the conversation up to its last user turn, byte for byte', async () => {
    const { lines } = await extract(['--turns', 'keep', 'd'], { d: row })
    assert.equal(lines[0], `${row.slice(0, row.indexOf(',{"role":"assistant","content":"A2"'))}]}`)
  })

  test('turns that are no text are refused by all, with the way out', async () => {
    const parts = '{"id":1,"messages":[{"role":"user","content":[{"type":"text","text":"t"}]}]}\n'
    const { code, stderr } = await extract(['-q', '--turns', 'all', 'd'], { d: parts })
    assert.equal(code, 1)
    assert.match(stderr, /^extract-prompts: d:1: .*--turns keep.*\[not-text\]\n$/)
  })
})

describe('rows that cannot be used', () => {
  const rows = [
    '{"conversations":[{"from":"gpt","value":"A"},{"from":"human","value":"Q"}]}',
    '{"conversations":[{"from":"system","value":"S"}]}',
    '{"conversations":[{"from":"alien","value":"Q"}]}',
    '{"conversations":[{"value":"Q"}]}',
    '{"conversations":[]}',
    '{"conversations":[{"from":"human","value":" \\n\\u00a0"}]}',
    '{"conversations":7}',
    '{"other":1}',
    '5',
    '{"conversations":[{"from":"human","value":"Q"}]',
    '',
    '{"prompt":"fine"}',
  ]
  const codes = [
    'assistant-first',
    'no-user',
    'unknown-role',
    'bad-turn',
    'no-turns',
    'empty-prompt',
    'wrong-type',
    'no-prompt',
    'not-object',
    'truncated',
  ]

  test('are named with file, row and reason, counted, and kept; the rest goes on', async () => {
    const args = ['--rejects', 'r', '--stats', 's', 'd.jsonl']
    const { code, lines, stderr, cwd } = await extract(args, { 'd.jsonl': rows.join('\n') })
    assert.equal(code, 1)
    assert.deepEqual(lines, ['{"id":"d.jsonl:12","prompt":"fine"}'])
    for (const [index, reason] of codes.entries()) {
      assert.match(
        stderr,
        new RegExp(`^extract-prompts: d.jsonl:${index + 1}: .*\\[${reason}\\]$`, 'm'),
      )
    }
    const kept = readFileSync(join(cwd, 'r'), 'utf8').trim().split('\n')
    const pieces = kept.map((line) => JSON.parse(line) as Record<string, unknown>)
    const byLine = pieces.sort((a, b) => Number(a.line) - Number(b.line))
    assert.deepEqual(
      byLine.map((piece) => piece.code),
      codes,
    )
    assert.deepEqual(byLine.map((piece) => piece.text).slice(0, 9), rows.slice(0, 9))
    const stats = JSON.parse(readFileSync(join(cwd, 's'), 'utf8'))
    assert.equal(stats.rows, stats.prompts + stats.rejected + stats.left_out)
    assert.deepEqual([stats.rows, stats.prompts, stats.blank_lines], [11, 1, 1])
  })

  test('after a hundred of a kind only their number is told', async () => {
    const many = `{"prompt":"x"}\n${'{"prompt":""}\n'.repeat(150)}`
    const { stderr } = await extract(['-q', 'd'], { d: many })
    assert.equal(messagesOf(stderr).length, 101)
    assert.match(stderr, /d: 50 more such rows .*\[empty-prompt\]\n$/)
  })

  test('a file of no known shape is an error of exit code 2 that names its fields', async () => {
    const files = { d: '{"text_a":1,"text_b":"x"}\n', e: '{"prompt":"x"}\n' }
    const { code, stderr, lines } = await extract(['-q', 'd', 'e'], files)
    assert.equal(code, 2)
    assert.match(
      stderr,
      /^extract-prompts: d: none of the known shapes: .*'text_a', 'text_b'; .*--prompt-field \[no-shape\]\n$/,
    )
    assert.deepEqual(lines, ['{"id":"e:1","prompt":"x"}'])
  })

  test('--prompt-field names the field, dots reach inside', async () => {
    const args = ['-q', '--prompt-field', 'a.b', '--keep', 'a.c,n', 'd']
    const { lines } = await extract(args, { d: '{"id":1,"n":1.0,"a":{"b":"Q","c":-0}}\n' })
    assert.deepEqual(lines, ['{"id":1,"prompt":"Q","a.c":-0,"n":1.0}'])
  })
})

describe('JSON arrays', () => {
  const rows = Array.from({ length: 50 }, (_, index) => ({
    id: index,
    prompt: `q [{"\\\n${index}`,
    n: { a: [] },
  }))
  const expected = rows.map(({ id, prompt }) => JSON.stringify({ id, prompt }))

  for (const [name, text] of [
    ['on one line', JSON.stringify(rows)],
    ['pretty-printed', JSON.stringify(rows, null, 2)],
    ['with a byte order mark', `\ufeff ${JSON.stringify(rows, null, '\t')}\n`],
  ] as const) {
    test(name, async () => {
      const { code, lines } = await extract(['-q', 'd.json.gz'], { 'd.json.gz': gzipSync(text) })
      assert.deepEqual([code, lines], [0, expected])
    })
  }

  test('a broken element costs itself alone', async () => {
    const text =
      '[\n {"prompt":"a"},\n {"prompt":"b,\n  "x": {\n  } },\n {"prompt":nope},\n {"prompt":"d"}\n]\n'
    const { code, lines, stderr } = await extract(['-q', 'd.json'], { 'd.json': text })
    assert.equal(code, 1)
    assert.deepEqual(lines, ['{"id":"d.json:1","prompt":"a"}', '{"id":"d.json:4","prompt":"d"}'])
    assert.match(stderr, /d.json:2: .*\n.*d.json:3: .*\[syntax\]\n$/)
  })

  test('a file that is cut short is told, what came before it is there', async () => {
    const text = JSON.stringify(rows)
    const cut = await extract(['-q', 'd.json'], { 'd.json': text.slice(0, -10) })
    assert.deepEqual([cut.code, cut.lines], [1, expected.slice(0, -1)])
    assert.match(
      cut.stderr,
      /d.json:50: .*middle of this element \(it begins at byte \d+\) \[truncated\]\n$/,
    )
    const open = await extract(['-q', 'd.json'], { 'd.json': text.slice(0, -1) })
    assert.deepEqual([open.code, open.lines], [1, expected])
    assert.match(open.stderr, /d.json: .*not closed.*\[truncated\]\n$/)
  })
})

describe('Parquet', () => {
  const rows = Array.from({ length: 1500 }, (_, index) => blend(index))
  const expected = rows.map(({ conversations, source }, index) =>
    JSON.stringify({
      id: `d.parquet:${index + 1}`,
      messages: [{ role: 'user', content: conversations![0]!.value }],
      source,
    }),
  )

  for (const [codec, compress] of [
    ['UNCOMPRESSED', undefined],
    ['SNAPPY', undefined],
    ['GZIP', gzipSync],
    ['BROTLI', brotliCompressSync],
  ] as const) {
    test(`open-perfectblend's columns, ${codec}, several row groups and pages`, async () => {
      const file = blendParquet(rows, {
        codec,
        ...(compress && { compress: (bytes: Uint8Array) => compress(bytes) }),
        rowGroup: 700,
        pageSize: 4096,
      })
      const { code, lines, stderr } = await extract(['-q', '--keep', 'source', 'd.parquet'], {
        'd.parquet': file,
      })
      assert.deepEqual([code, stderr], [0, ''])
      assert.deepEqual(lines, expected)
    })
  }

  test('rows of nulls are named, the rest goes on', async () => {
    const odd: BlendRow[] = [
      blend(0),
      { conversations: null, source: null },
      { conversations: [], source: 'x' },
      { conversations: [{ from: null, value: null }], source: 'x' },
      blend(4),
    ]
    const { code, lines, stderr, cwd } = await extract(['-q', '--rejects', 'r', 'd.parquet'], {
      'd.parquet': blendParquet(odd),
    })
    assert.equal(code, 1)
    assert.equal(lines.length, 2)
    assert.match(stderr, /d.parquet:2: .*\[no-prompt\]/)
    assert.match(stderr, /d.parquet:3: .*\[no-turns\]/)
    assert.match(stderr, /d.parquet:4: .*\[bad-turn\]/)
    assert.match(
      readFileSync(join(cwd, 'r'), 'utf8'),
      /"line":3,.*"text":"\{\\"conversations\\":\[\]\}"/,
    )
  })

  test('a file that is cut short is named, the others are read', async () => {
    const files = {
      'a.parquet': blendParquet(rows).subarray(0, 5000),
      'b.jsonl': '{"prompt":"x"}\n',
    }
    const { code, lines, stderr } = await extract(['-q', 'a.parquet', 'b.jsonl'], files)
    assert.deepEqual([code, lines.length], [1, 1])
    assert.match(stderr, /^extract-prompts: a.parquet: .*cut short.*\[parquet-damaged\]\n$/)
  })

  test('a damaged page costs the rest of its row group', async () => {
    const file = blendParquet(rows, {
      rowGroup: 500,
      codec: 'GZIP',
      compress: (bytes) => gzipSync(bytes),
    })
    file.fill(0xff, 2000, 2600)
    const { code, lines, stderr } = await extract(['-q', '--stats', '-', 'd.parquet'], {
      'd.parquet': file,
    })
    assert.equal(code, 1)
    assert.ok(lines.length >= 1000 && lines.length < 1500, `${lines.length} rows`)
    assert.match(
      stderr,
      /d.parquet:\d+: \d+ rows from here on cannot be read: .*\[parquet-damaged\]/,
    )
    const stats = JSON.parse(stderr.split('\n').find((line) => line.startsWith('{'))!)
    assert.deepEqual([stats.rows, stats.prompts], [1500, lines.length])
  })

  test('a column of the wrong type is told row by row, one of no known name at once', async () => {
    const schema = [
      { name: 'schema', num_children: 2 },
      { name: 'prompt', type: 'INT64', repetition_type: 'REQUIRED' },
      { name: 'id', type: 'INT64', repetition_type: 'REQUIRED' },
    ] as Parameters<typeof parquet>[0]
    const numbers = [
      { name: 'prompt', data: [1n, 2n] },
      { name: 'id', data: [7n, 9007199254740993n] },
    ]
    const file = parquet(schema, numbers)
    const wrong = await extract(['-q', 'd.parquet'], { 'd.parquet': file })
    assert.equal(wrong.code, 1)
    assert.match(wrong.stderr, /d.parquet:1: .*'prompt'.*\[wrong-type\]\n.*d.parquet:2:/)
    const none = await extract(['-q', '--prompt-field', 'q', 'd.parquet'], { 'd.parquet': file })
    assert.equal(none.code, 2)
    assert.match(
      none.stderr,
      /'q' of --prompt-field: it has the columns 'prompt', 'id' \[no-shape\]/,
    )
  })

  test('from a pipe it is refused, with the way out', async () => {
    const result = await run(NAME, ['-q'], { input: blendParquet([blend(1)]) })
    assert.equal(result.code, 2)
    assert.match(result.stderr, /name the file as an operand \[parquet-pipe\]/)
  })
})

describe('ids', () => {
  test('do not depend on the folder, nor on compression', async () => {
    const cwd = newFolder()
    mkdirSync(join(cwd, 'a'))
    const text = '{"prompt":"x"}\n\n{"prompt":"y"}\n'
    writeFileSync(join(cwd, 'd.jsonl'), text)
    writeFileSync(join(cwd, 'a', 'd.jsonl.gz'), gzipSync(text))
    const plain = await run(NAME, ['-q', 'd.jsonl'], { cwd })
    const other = await run(NAME, ['-q', 'a/*.gz'], { cwd })
    assert.equal(
      plain.stdout.toString(),
      '{"id":"d.jsonl:1","prompt":"x"}\n{"id":"d.jsonl:3","prompt":"y"}\n',
    )
    assert.deepEqual(other.stdout, plain.stdout)
  })

  test('that would repeat end the run; --path-ids tells the files apart', async () => {
    const cwd = newFolder()
    for (const folder of ['a', 'b']) {
      mkdirSync(join(cwd, folder))
      writeFileSync(join(cwd, folder, 'd.jsonl'), '{"prompt":"x"}\n')
    }
    const same = await run(NAME, ['-q', '*/d.jsonl'], { cwd })
    assert.equal(same.code, 2)
    assert.match(same.stderr, /^extract-prompts: b\/d.jsonl: .*--path-ids \[same-name\]\n$/)
    const apart = await run(NAME, ['-q', '--path-ids', '*/d.jsonl'], { cwd })
    assert.match(apart.stdout.toString(), /"a\/d.jsonl:1".*\n.*"b\/d.jsonl:1"/)
  })

  test('--key names the member, --samples numbers it', async () => {
    const args = ['-q', '--key', 'm.k', '--samples', '2', '-']
    const { stdout } = await run(NAME, args, {
      input:
        '{"id":1,"m":{"k":"a\\"b"},"prompt":"x"}\n{"prompt":"y","m":{"k":7}}\n{"prompt":"z"}\n',
    })
    assert.deepEqual(stdout.toString().match(/"id":("([^"\\]|\\.)*"|\d+)/g), [
      '"id":"a\\"b#0"',
      '"id":"a\\"b#1"',
      '"id":"7#0"',
      '"id":"7#1"',
      '"id":"stdin:3#0"',
      '"id":"stdin:3#1"',
    ])
  })
})

describe('choice', () => {
  const input = Array.from(
    { length: 2000 },
    (_, index) => `{"id":${index},"prompt":"${'x'.repeat(index % 9)}y"}\n`,
  )
  const ids = (stdout: Buffer): number[] =>
    stdout
      .toString()
      .split('\n')
      .slice(0, -1)
      .map((line) => (JSON.parse(line) as { id: number }).id)
  const choose = async (args: string[], lines = input) => {
    const { stdout, stderr } = await run(NAME, ['--stats', '-', ...args], { input: lines.join('') })
    const stats = JSON.parse(stderr.split('\n').find((line) => line.startsWith('{'))!)
    assert.equal(stats.rows, stats.prompts + stats.rejected + stats.left_out)
    return { ids: ids(stdout), stats }
  }

  test('--skip and --limit', async () => {
    const { ids: chosen, stats } = await choose(['--skip', '5', '--limit', '3'])
    assert.deepEqual(chosen, [5, 6, 7])
    assert.equal(stats.rows, 8)
  })

  test('--shuffle is a permutation that the order of the input does not change', async () => {
    const first = await choose(['--shuffle', '7'])
    const again = await choose(['--shuffle', '7'], [...input].reverse())
    const other = await choose(['--shuffle', '8'])
    assert.deepEqual(first.ids, again.ids)
    assert.notDeepEqual(first.ids, other.ids)
    assert.deepEqual(
      [...first.ids].sort((a, b) => a - b),
      input.map((_, index) => index),
    )
    const some = await choose(['--shuffle', '7', '--skip', '10', '--limit', '20'])
    assert.deepEqual(some.ids, first.ids.slice(10, 30))
  })

  test('--sample takes its share, the same for every order, more with a larger rate', async () => {
    const tenth = await choose(['--sample', '0.1'])
    const fifth = await choose(['--sample', '0.2'], [...input].reverse())
    assert.ok(tenth.ids.length > 140 && tenth.ids.length < 260, String(tenth.ids.length))
    assert.ok(tenth.ids.every((id) => fifth.ids.includes(id)))
    const other = await choose(['--sample', '0.1', '--seed', '2'])
    assert.notDeepEqual(other.ids, tenth.ids)
  })

  test('--max-prompt-chars counts characters, --skip-empty leaves empty prompts out', async () => {
    const lines = [
      '{"id":1,"prompt":"ééé"}\n',
      '{"id":2,"prompt":"éé😀x"}\n',
      '{"id":3,"prompt":""}\n',
    ]
    const { ids: chosen, stats } = await choose(['--max-prompt-chars', '3', '--skip-empty'], lines)
    assert.deepEqual(chosen, [1])
    assert.deepEqual([stats.left_out_by_reason.too_long, stats.left_out_by_reason.empty], [1, 1])
  })
})

describe('the output', () => {
  const input = '{"prompt":"x"}\n'.repeat(100_000)

  test('that is full is told once, exit 2; one that nobody reads ends the run, exit 0', async () => {
    const full = await run(NAME, ['-q'], { input, shell: 'exec "$0" "$@" > /dev/full' })
    assert.deepEqual([full.code, full.stderr.match(/no space left/g)?.length], [2, 1])
    const closed = await run(NAME, ['-q'], { input, shell: '"$0" "$@" | head -n 1; exit' })
    assert.deepEqual([closed.code, closed.stderr], [0, ''])
  })

  test('that nobody reads: the counts of --shuffle balance', async () => {
    const stats = join(newFolder(), 'stats')
    const { code } = await run(NAME, ['--shuffle', '1', '--stats', stats], {
      input,
      shell: '"$0" "$@" | head -n 1; exit',
    })
    assert.equal(code, 0)
    const { rows, prompts, left_out } = JSON.parse(readFileSync(stats, 'utf8'))
    assert.deepEqual([rows, prompts + left_out], [100_000, 100_000])
    assert.ok(prompts < rows)
  })
})

test('usage errors', async () => {
  for (const [args, message] of [
    [['--keep', 'messages'], /--keep messages cannot be/],
    [['--sample', '2'], /--sample takes a rate/],
    [['--seed', '2'], /--seed is for --sample/],
    [['--turns', 'last'], /--turns takes one of first, all, keep/],
    [['no*match'], /no\*match: no file matches/],
  ] as const) {
    const { code, stderr } = await run(NAME, [...args])
    assert.deepEqual([code, message.test(stderr)], [2, true], stderr)
  }
})
