import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fanout, prompts } from '../support/fanout.ts'
import {
  answerWell,
  answerWith,
  beginStream,
  chat,
  DONE,
  delta,
  events,
  json,
  lastMessage,
  type Seen,
  serve,
  streamed,
  USAGE_CHUNK,
} from '../support/servers.ts'

const MODEL = ['--model', 'm']

/** Members that differ from run to run, made the same. */
function steady(line: string): string {
  return line
    .replace(/"started_at":"[^"]*"/, '"started_at":"T"')
    .replace(/"(first_token_ms|total_ms)":\d+/g, '"$1":0')
    .replace(/"request_hash":"[0-9a-f]{16}"/, '"request_hash":"H"')
    .replace(/"batch_req_[0-9a-f]+"/, '"batch_req_X"')
}

describe('the shapes of records', { concurrency: true }, () => {
  test('prompt: the exact line, streamed and not', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const input = '{"category": "math", "id": 81, "prompt": "2+2?"}\n'
    const run = await fanout(server.url, [], { input })
    assert.equal(run.code, 0, run.stderr)
    const tail = '"request_hash":"H","input":{"category":"math"}}'
    const head =
      '{"id":81,"status":"success","conversations":[{"role":"user","content":"2+2?"},' +
      '{"role":"assistant","content":"4"}],"finish_reason":"stop","model":"m",' +
      '"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14},"attempts":1,'
    const streamedTiming = '"timing":{"started_at":"T","first_token_ms":0,"total_ms":0},'
    assert.deepEqual(run.lines.map(steady), [head + streamedTiming + tail])
    assert.match(run.records[0]!.timing.started_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.match(run.records[0]!.request_hash, /^[0-9a-f]{16}$/)
    assert.deepEqual(JSON.parse(server.requests[0]!.body), {
      model: 'm',
      messages: [{ role: 'user', content: '2+2?' }],
      stream: true,
      stream_options: { include_usage: true },
    })
    assert.equal(server.requests[0]!.path, '/v1/chat/completions')

    const whole = await fanout(server.url, ['--no-stream'], { input })
    const timing = '"timing":{"started_at":"T","total_ms":0},'
    assert.deepEqual(whole.lines.map(steady), [head + timing + tail])
    assert.deepEqual(JSON.parse(server.requests[1]!.body), {
      model: 'm',
      messages: [{ role: 'user', content: '2+2?' }],
    })
    assert.equal(whole.records[0]!.request_hash, run.records[0]!.request_hash)
  })

  test('no token is lost or invented on the way of a record', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const odd =
      '"big":12345678901234567890,"zero":-0,"huge":1e400,"one":1.0,"b":1,"a":2,' +
      '"esc":"\\u00e9\\/\\n\\ud800","nest":{"z":[1.50,{"y":-0.0}],"a":"\\u0041"},' +
      '"__proto__":{"x":1},"":null,"\\u0061b":true'
    const messages =
      '[{"role": "user","content":"\\u00e9 \\/ \\ud83d\\ude00 \\udc00","n":1.0,"big":12345678901234567890}]'
    const input =
      `{"id":"a\\/\\u00e9","prompt":"\\u00e9 \\/ \\ud800 é 😀",${odd}}\n` +
      `{${odd},"messages": ${messages} , "id": 9007199254740993}\n`
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 0, run.stderr)
    const byId = (token: string): string => run.lines.find((line) => line.includes(token))!
    const first = byId('"id":"a\\/\\u00e9"')
    assert.ok(first.startsWith('{"id":"a\\/\\u00e9","status":"success","conversations":['), first)
    assert.ok(first.includes('[{"role":"user","content":"\\u00e9 \\/ \\ud800 é 😀"},'), first)
    assert.ok(first.endsWith(`,"input":{${odd}}}`), first)
    const second = byId('"id":9007199254740993')
    assert.ok(second.startsWith('{"id":9007199254740993,'), second)
    const message = messages.slice(1, -1)
    assert.ok(second.includes(`"conversations":[${message},{"role":"assistant"`), second)
    assert.ok(second.endsWith(`,"input":{${odd}}}`), second)
    const sent = server.requests.map(({ body }) => body).sort((a, b) => a.length - b.length)
    assert.ok(sent.some((body) => body.includes('"content":"\\u00e9 \\/ \\ud800 é 😀"')))
    assert.ok(
      sent.some((body) => body.includes(`"messages":[${message}]`)),
      sent.join('\n'),
    )
  })

  test('messages are sent as they are, with --system only where there is none', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const own = '[{"role":"system","content":"mine"},{"role":"user","content":"a"}]'
    const input =
      `{"id":1,"messages":${own}}\n` +
      '{"id":2,"messages":[{"role":"user","content":"b"}]}\n{"id":3,"prompt":"c"}\n' +
      '{"id":4,"turns":["d"]}\n{"id":5,"messages":[{"role":"developer","content":"x"},{"role":"user","content":"e"}]}\n'
    const run = await fanout(server.url, [...MODEL, '--system', 'be "brief"\n', '-c', '1'], {
      input,
    })
    assert.equal(run.code, 0, run.stderr)
    const roles = run.records.map(({ conversations }) =>
      conversations.map(({ role, content }) => `${role}:${content}`).join('|'),
    )
    const system = 'system:be "brief"\n'
    assert.deepEqual(roles, [
      'system:mine|user:a|assistant:4',
      `${system}|user:b|assistant:4`,
      `${system}|user:c|assistant:4`,
      `${system}|user:d|assistant:4`,
      'developer:x|user:e|assistant:4',
    ])
    assert.ok(server.requests[0]!.body.includes(`"messages":${own}`))
  })

  test('turns: every answer joins the context, usage and attempts are sums', async (t) => {
    const failedOnce = new Set<string>()
    const server = await serve(t, (request, response) => {
      const text = lastMessage(request)
      if (text === 'second' && !failedOnce.has(text)) {
        failedOnce.add(text)
        return json(response, { error: { message: 'busy' } }, 500)
      }
      const parts = [
        delta({ reasoning: 'hm' }),
        delta({ content: `re ${text}` }),
        delta({}, 'stop'),
      ]
      beginStream(response).end(events(...parts, USAGE_CHUNK, DONE))
    })
    const input = '{"question_id":1,"turns":["first","second"],"reference":["x","y"]}\n'
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 0, run.stderr)
    const [record] = run.records
    assert.deepEqual(record!.conversations, [
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 're first', reasoning_content: 'hm' },
      { role: 'user', content: 'second' },
      { role: 'assistant', content: 're second', reasoning_content: 'hm' },
    ])
    assert.deepEqual(record!.usage, { prompt_tokens: 18, completion_tokens: 10, total_tokens: 28 })
    assert.equal(record!.attempts, 3)
    assert.equal(record!.id, 1)
    assert.deepEqual(record!.input, { reference: ['x', 'y'] })
    const last = JSON.parse(server.requests.at(-1)!.body) as { messages: object[] }
    assert.deepEqual(
      last.messages.map((message) => (message as { role: string }).role),
      ['user', 'assistant', 'user'],
    )
    assert.equal(run.stats.tokens.prompt, 18)
    assert.equal(run.stats.tokens.completion, 10)
  })

  test('turns: what each took is told, and reasoning stays out of the context or not', async (t) => {
    for (const [history, sentBack] of [
      ['drop', undefined],
      ['keep', 'hm'],
    ] as const) {
      const server = await serve(t, (_request, response) => {
        const parts = [delta({ reasoning: 'hm' }), delta({ content: 'yes' }), delta({}, 'stop')]
        beginStream(response).end(events(...parts, USAGE_CHUNK, DONE))
      })
      const { records, lines } = await fanout(
        server.url,
        [...MODEL, '--history-reasoning', history],
        { input: '{"id":1,"turns":["a","b"]}\n' },
      )
      const last = JSON.parse(server.requests.at(-1)!.body) as { messages: object[] }
      const context = last.messages[1] as { reasoning_content?: string }
      assert.equal(context.reasoning_content, sentBack)
      assert.equal(records[0]?.conversations[1]?.reasoning_content, 'hm')
      const { turns } = JSON.parse(lines[0]!) as { turns: Record<string, unknown>[] }
      assert.equal(turns.length, 2)
      for (const turn of turns) {
        assert.equal(turn.finish_reason, 'stop')
        assert.equal(turn.attempts, 1)
        assert.deepEqual(turn.usage, { prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 })
        assert.ok(Number(turn.total_ms) >= Number(turn.first_token_ms))
      }
    }
  })

  test('--return-token-ids asks for token ids and records them', async (t) => {
    const server = await serve(t, (_request, response) => {
      const chunk = (delta: object, beside: object, top: object): object => ({
        choices: [{ delta, finish_reason: null, ...beside }],
        ...top,
      })
      const parts = [
        chunk({ role: 'assistant' }, {}, { prompt_token_ids: [5, 6] }),
        chunk({ content: 'y' }, { token_ids: [7] }, {}),
        chunk({ content: 'es' }, { token_ids: [8, 9] }, {}),
        delta({}, 'stop'),
      ]
      beginStream(response).end(events(...parts, DONE))
    })
    const { lines } = await fanout(server.url, [...MODEL, '--return-token-ids'], {
      input: '{"id":1,"prompt":"q"}\n',
    })
    assert.equal(
      (JSON.parse(server.requests[0]!.body) as Record<string, unknown>).return_token_ids,
      true,
    )
    const line = JSON.parse(lines[0]!) as Record<string, unknown>
    assert.deepEqual(line.prompt_token_ids, [5, 6])
    assert.deepEqual(line.token_ids, [7, 8, 9])
  })

  test('turns: a system text beside them comes first, and before --system', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const { records } = await fanout(server.url, [...MODEL, '--system', 'Be long.'], {
      input: '{"id":1,"turns":["a","b"],"system":"Be \\u0062rief."}\n{"id":2,"turns":["a"]}\n',
    })
    const own = records.find(({ id }) => id === 1)
    assert.deepEqual(
      own?.conversations.map(({ role }) => role),
      ['system', 'user', 'assistant', 'user', 'assistant'],
    )
    assert.equal(own?.conversations[0]?.content, 'Be brief.')
    assert.deepEqual(own?.input, {})
    assert.equal(records.find(({ id }) => id === 2)?.conversations[0]?.content, 'Be long.')
  })

  test('turns: a failure in the second one keeps the first', async (t) => {
    const server = await serve(t, (request, response) => {
      if (lastMessage(request) === 'two') return json(response, { error: { message: 'no' } }, 400)
      answerWith(request, response, 'one done')
    })
    const input = '{"id":"t","turns":["one","two"]}\n'
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 1)
    assert.deepEqual(run.lines, [])
    const [failure] = run.failures
    assert.deepEqual(failure!.partial.conversations, [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'one done' },
    ])
    assert.equal(failure!.error.code, 'http-400')
    assert.equal(failure!.error.attempts, 2)
    assert.deepEqual(failure!.input, { id: 't', turns: ['one', 'two'] })
  })

  test('turns: the message counts the attempts of the turn that failed, the record all', async (t) => {
    for (const [retries, told, sum] of [
      [0, 'attempt 1 of 1', 2],
      [2, 'attempt 3 of 3', 4],
    ] as const) {
      const server = await serve(t, (request, response) => {
        if (lastMessage(request) === 'two') return json(response, {}, 500)
        answerWell(request, response)
      })
      const run = await fanout(server.url, [...MODEL, '--retries', String(retries)], {
        input: '{"id":1,"turns":["one","two"]}\n',
        random: () => 0,
      })
      assert.ok(run.stderr.includes(`ERROR sample 1: HTTP 500: {} (${told})\n`), run.stderr)
      assert.equal(run.failures[0]!.error.attempts, sum)
    }
  })

  test('turns: the third alone is tried again, and its failure keeps the first two', async (t) => {
    for (const [status, tries, code] of [
      [503, 2, 0],
      [503, 3, 1],
    ] as const) {
      let third = 0
      const server = await serve(t, (request, response) => {
        const text = lastMessage(request)
        const fails = text === 'three' && ++third <= (code === 0 ? tries - 1 : tries)
        if (fails) return json(response, { error: { message: 'busy' } }, status)
        answerWith(request, response, `re ${text}`)
      })
      const input = '{"id":"t","turns":["one","two","three"]}\n'
      const run = await fanout(server.url, [...MODEL, '--retries', String(tries - 1)], { input })
      assert.equal(run.code, code, run.stderr)
      const chats = server.requests.filter(({ body }) => body !== '')
      assert.deepEqual(
        chats.map((request) => lastMessage(request)),
        ['one', 'two', ...Array.from({ length: tries }, () => 'three')],
      )
      const kept =
        code === 0 ? run.records[0]!.conversations : run.failures[0]!.partial.conversations
      assert.deepEqual(
        (kept as { content: string }[]).map(({ content }) => content),
        ['one', 're one', 'two', 're two', ...(code === 0 ? ['three', 're three'] : [])],
      )
    }
  })

  test('batch lines: url, body and answer as they stand, never streamed', async (t) => {
    const reply =
      '{"choices":[{"message":{"content":"x","big":12345678901234567890},\r\n"finish_reason":"stop"}],\n"z":1.0,"a":-0,"s":"\\u00e9\\/"}\n'
    const server = await serve(t, (_request, response, nth) => {
      response.setHeader('x-request-id', `req-${nth}`)
      json(response, reply)
    })
    const body =
      '{ "model":"other", "temperature": 1.0, "messages":[{"role":"user","content":"\\u00e9\\/"}] , "n_big":12345678901234567890}'
    const input =
      `{"custom_id":"r\\u0031","method":"POST","url":"/v1/chat/completions","body":${body}}\n` +
      '{"custom_id":"r2","method":"POST","url":"/v1/embeddings","body":{"input":"x"}}\n' +
      '{"custom_id":"r3","method":"GET","url":"/v1/models","body":{}}\n' +
      '{"custom_id":"r4","method":"POST","url":"http://evil/","body":{}}\n' +
      `{"custom_id":"r5","method":"POST","url":"/v1/x","body":{"a":"\\"stream\\":true","stream": true}}\n`
    const run = await fanout(server.url, [...MODEL, '-c', '1'], { input })
    assert.equal(run.code, 1, run.stderr)
    const spaced = reply.trim().replace(/[\r\n]/g, ' ')
    const line = (id: string, request: string): string =>
      `{"id":"batch_req_X","custom_id":${id},"response":{"status_code":200,"request_id":"${request}","body":${spaced}},"error":null}`
    assert.deepEqual(run.lines.map(steady), [line('"r\\u0031"', 'req-0'), line('"r2"', 'req-1')])
    assert.deepEqual(
      server.requests.map((request) => [request.path, request.body]),
      [
        ['/v1/chat/completions', body],
        ['/v1/embeddings', '{"input":"x"}'],
      ],
    )
    assert.deepEqual(
      run.failures.map(({ id, error }) => [id, error.code]),
      [
        ['r3', 'bad-batch-line'],
        ['r4', 'bad-batch-line'],
        ['r5', 'bad-batch-line'],
      ],
    )
  })

  test('the first shape in order decides; what is none fails and the rest go on', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const input =
      '{"id":1,"prompt":"p","turns":["t"],"messages":[{"role":"user","content":"m"}]}\n' +
      '{"id":2,"prompt":"p","turns":["t"]}\n' +
      '{"id":3,"question":"q"}\n' +
      '[1,2]\n' +
      '\n' +
      '{"id":4,"messages":[{"role":"user","content":"m"},{"role":"assistant","content":"a"}]}\n' +
      '{"id":5,"turns":[]}\n{"id":6,"prompt":5}\n{"id":7,"turns":[1]}\n{"id":8,"messages":"x"}\n' +
      '{"id":9,"prompt":[1,2]}\n{"id":10,"prompt":'
    const run = await fanout(server.url, [...MODEL, '-c', '1'], { input })
    assert.equal(run.code, 1)
    assert.deepEqual(
      run.records.map(({ conversations }) => conversations[0]!.content),
      ['m', 't'],
    )
    assert.equal(run.stats.records, 11)
    assert.equal(run.stats.failed, 9)
    const codes = run.failures.map(({ id, error }) => `${id}: ${error.code}`)
    assert.deepEqual(
      codes.filter((code) => !code.startsWith('sha256')),
      [
        '3: no-prompt',
        '4: bad-messages',
        '5: no-prompt',
        '6: no-prompt',
        '7: no-prompt',
        '8: no-prompt',
        '9: no-prompt',
      ],
    )
    assert.match(run.stderr, /^ERROR sample 3: <stdin>:3: .*extract-prompts/m)
    assert.match(run.stderr, /^ERROR sample sha256:[0-9a-f]{16}: <stdin>:4: /m)
    assert.match(run.stderr, /^ERROR sample sha256:[0-9a-f]{16}: <stdin>:12: /m)
    const texts = run.failures.map(({ input_text: text }) => text)
    assert.ok(texts.includes('{"id":10,"prompt":'), 'the line that is no JSON is kept as text')
  })

  test('a member with null, such as a column of an export, is as good as none', async (t) => {
    const asked = { messages: [{ role: 'user', content: 'b' }] }
    const server = await serve(t, (request, response) => answerWell(request, response))
    const input = [
      { id: 1, messages: null, turns: null, prompt: 'p', body: null },
      { id: 2, messages: null, turns: ['t'], prompt: null },
      { custom_id: '3', url: '/v1/chat/completions', prompt: null, body: asked },
      { id: 4, messages: null, turns: null, prompt: null, body: null },
    ]
    const run = await fanout(server.url, [...MODEL, '-c', '1'], {
      input: input.map((record) => `${JSON.stringify(record)}\n`).join(''),
    })
    const sent = server.requests.map(({ body }) => (JSON.parse(body) as typeof asked).messages)
    assert.deepEqual(
      sent.map(([message]) => message!.content),
      ['p', 't', 'b'],
    )
    assert.deepEqual(run.records[0]!.input, { messages: null, turns: null, body: null })
    const [{ id, error }] = run.failures as [(typeof run.failures)[0]]
    assert.deepEqual([id, error.code], [4, 'no-prompt'])
    assert.match(error.message, /none of messages, turns, prompt and body/)
  })

  test('--prompt-field, --send and --param', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const input = '{"id":1,"q":{"text":"deep"},"tools":[{"n":1.0}],"top_k":7,"prompt":"not this"}\n'
    const args = ['--prompt-field', 'q.text', '--send', 'tools,top_k,missing']
    args.push('--param', 'a.b.c=1.0', '--param', 'a.b.d="x"', '--param', 'top_k=3')
    args.push('--param', 'big=12345678901234567890', '--temperature', '0.70', '--max-tokens', '99')
    args.push('--top-p', '1', '--seed', '5', '--no-stream')
    const run = await fanout(server.url, [...MODEL, ...args], { input })
    assert.equal(run.code, 0, run.stderr)
    const { body } = server.requests[0]!
    const sent = JSON.parse(body) as Record<string, unknown>
    assert.deepEqual(sent.messages, [{ role: 'user', content: 'deep' }])
    assert.equal(sent.top_k, 7)
    assert.equal(sent.max_tokens, 99)
    assert.equal(sent.temperature, 0.7)
    assert.equal(sent.top_p, 1)
    assert.equal(sent.seed, 5)
    assert.deepEqual(sent.a, { b: { c: 1, d: 'x' } })
    assert.ok(body.includes('"c":1.0') && body.includes('"big":12345678901234567890'), body)
    assert.ok(body.includes('"tools":[{"n":1.0}]'), body)
    assert.ok(!body.includes('missing') && body.split('"top_k"').length === 2, body)
    assert.ok(run.lines[0]!.includes('"tools":[{"n":1.0}]'), run.lines[0])
  })

  test('--endpoint completions: text and token ids', async (t) => {
    const server = await serve(t, (request, response) => {
      const { stream } = JSON.parse(request.body) as { stream?: boolean }
      const choice = { index: 0, text: 'abc', finish_reason: 'length' }
      const usage = { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 }
      if (stream) {
        const one = { model: 'm', choices: [{ index: 0, text: 'ab', finish_reason: null }] }
        const two = { model: 'm', choices: [{ index: 0, text: 'c', finish_reason: 'length' }] }
        beginStream(response).end(events(one, two, { choices: [], usage }, DONE))
      } else json(response, { model: 'm', choices: [choice], usage })
    })
    const input =
      '{"id":1,"prompt":"x\\u0041"}\n{"id":2,"prompt":[1, 2,3]}\n{"id":3,"turns":["t"]}\n'
    for (const extra of [[], ['--no-stream']]) {
      const args = [...MODEL, '--endpoint', 'completions', '-c', '1', ...extra]
      const run = await fanout(server.url, args, { input })
      assert.equal(run.code, 1)
      assert.deepEqual(
        run.failures.map(({ id, error }) => [id, error.code]),
        [[3, 'no-prompt']],
      )
      assert.ok(
        run.lines[0]!.startsWith(
          '{"id":1,"status":"success","prompt":"x\\u0041","text":"abc","finish_reason":"length",',
        ),
        run.lines[0],
      )
      assert.ok(
        run.lines[1]!.startsWith('{"id":2,"status":"success","prompt":[1, 2,3],"text":"abc",'),
        run.lines[1],
      )
      assert.match(run.stderr, /2 answers are cut by the token limit/)
    }
    assert.equal(server.requests[0]!.path, '/v1/completions')
    assert.ok(server.requests[1]!.body.includes('"prompt":[1, 2,3]'))
  })

  test('ids: the key of the record, its own token', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const input =
      '{"index":7,"uuid":"u","prompt":"a"}\n{"id":null,"index":1.0,"prompt":"b"}\n' +
      '{"prompt":"c"}\n{"id":1,"id":2,"prompt":"d"}\n{"meta":{"k":5},"id":9,"prompt":"e"}\n'
    const run = await fanout(server.url, [...MODEL, '-c', '1'], { input })
    const tokens = run.lines.map((line) => /^\{"id":([^,]*),/.exec(line)![1])
    assert.deepEqual(tokens.slice(0, 2), ['"u"', '1.0'])
    assert.match(tokens[2]!, /^"sha256:[0-9a-f]{16}"$/)
    assert.deepEqual(tokens.slice(3), ['2', '9'])
    assert.deepEqual(run.records[0]!.input, { index: 7 })
    const keyed = await fanout(server.url, [...MODEL, '-c', '1', '--key', 'meta.k'], { input })
    const other = keyed.lines.map((line) => /^\{"id":([^,]*),/.exec(line)![1])
    assert.equal(other[4], '5')
    assert.match(other[0]!, /^"sha256:/)
    assert.deepEqual(keyed.records[4]!.input, { meta: { k: 5 }, id: 9 })
  })

  test('CRLF, BOM, blank lines and a missing last newline are no obstacle', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const input = '\ufeff{"id":1,"prompt":"a"}\r\n\r\n  \n{"id":2,"prompt":"\u2028b\u0085"}'
    for (const size of [1, 7, 65536]) {
      const args = [...MODEL, '-c', '1', '--read-size', String(size)]
      const run = await fanout(server.url, args, { input })
      assert.equal(run.code, 0, run.stderr)
      const contents = run.records.map(({ conversations }) => conversations[0]!.content)
      assert.deepEqual(contents, ['a', '\u2028b\u0085'])
      assert.equal(run.stats.records, 2)
    }
  })
})

describe('failure records as input', { concurrency: true }, () => {
  test('stand for their input under their id, and round-trip whatever the bytes', async (t) => {
    let well = false
    const server = await serve(t, (request, response) => {
      if (well) answerWell(request, response)
      else json(response, { error: { message: 'no' } }, 422)
    })
    const odd = '{"prompt":"\\u00e9","x":1.0,"y":[-0,12345678901234567890]}'
    const lines: (string | Buffer)[] = [
      odd,
      '{"id":"i","turns":["a","b"]}',
      '{"custom_id":"c","method":"POST","url":"/v1/chat/completions","body":{"messages":[]}}',
      'not json "at all" \u2028',
      Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x7d]),
      '[1,2]',
      '{"id":5}',
      '7',
    ]
    const input = Buffer.concat(lines.flatMap((line) => [Buffer.from(line), Buffer.from('\n')]))
    const first = await fanout(server.url, [...MODEL, '-c', '1'], { input })
    assert.equal(first.code, 1)
    assert.equal(first.failures.length, lines.length)
    const of = (run: typeof first): string[] =>
      run.failureLines.map((line) => line.replace(/^.*?"partial":\{[^}]*\},/, '')).sort()
    assert.ok(of(first).includes(`"input":${odd}}`), of(first).join('\n'))
    assert.ok(
      of(first).includes(`"input_text":"not json \\"at all\\" \u2028"}`),
      of(first).join('\n'),
    )
    const base64 = Buffer.from([0x7b, 0xff, 0xfe, 0x00, 0x7d]).toString('base64')
    assert.ok(of(first).includes(`"input_base64":"${base64}"}`), of(first).join('\n'))

    const again = await fanout(server.url, [...MODEL, '-c', '1'], {
      input: `${first.failureLines.join('\n')}\n`,
    })
    assert.deepEqual(of(again), of(first))
    const ids = (run: typeof first): unknown[] => run.failures.map(({ id }) => id).sort()
    assert.deepEqual(ids(again), ids(first))

    well = true
    const last = await fanout(server.url, [...MODEL, '-c', '1'], {
      input: `${again.failureLines.join('\n')}\n`,
    })
    assert.equal(last.stats.answered, 3)
    const answered = last.lines.find((line) => line.includes('"id":"sha256:'))!
    assert.ok(answered.endsWith('"input":{"x":1.0,"y":[-0,12345678901234567890]}}'), answered)
    assert.equal(last.records.find(({ id }) => id === 'i')!.conversations.length, 4)
    assert.ok(last.lines.some((line) => line.includes('"custom_id":"c"')))
  })

  test('a record of the user that only looks like one is asked as it is', async (t) => {
    const server = await serve(t, (request, response) => answerWell(request, response))
    const input = '{"id":1,"status":"error","error":null,"prompt":"a"}\n'
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.code, 0, run.stderr)
    assert.deepEqual(run.records[0]!.input, { status: 'error', error: null })
  })
})

describe('what servers send', { concurrency: true }, () => {
  const input = '{"id":1,"prompt":"p"}\n'

  /** One record against a server that answers with these events or this body. */
  async function answerOf(
    t: { after(cleanUp: () => Promise<void>): void },
    reply: (request: Seen) => string | object,
    args: string[] = [],
  ) {
    const server = await serve(t, (request, response) => {
      const body = reply(request)
      if (typeof body === 'string') beginStream(response).end(body)
      else json(response, body)
    })
    return fanout(server.url, [...MODEL, '--retries', '0', ...args], { input })
  }

  for (const name of ['reasoning', 'reasoning_content', 'thinking']) {
    test(`${name} becomes reasoning_content`, async (t) => {
      const parts = [
        delta({ [name]: 'Ad' }),
        delta({ [name]: 'd.' }),
        delta({ content: '4' }, 'stop'),
      ]
      const run = await answerOf(t, () => events(...parts, USAGE_CHUNK, DONE))
      const expected = '{"role":"assistant","content":"4","reasoning_content":"Add."}'
      assert.ok(run.lines[0]!.includes(expected), run.lines[0])
      const message = { role: 'assistant', content: '4', [name]: 'Add.' }
      const whole = await answerOf(t, () => chat('', {}, { message }), ['--no-stream'])
      assert.ok(whole.lines[0]!.includes(expected), whole.lines[0])
    })
  }

  test('reasoning under two names is not doubled; nulls are nothing', async (t) => {
    const parts = [
      delta({ role: 'assistant', content: null, reasoning: null, tool_calls: null }),
      delta({ reasoning: 'r', reasoning_content: 'r' }),
      delta({ content: 'c', reasoning_content: null }, 'stop'),
    ]
    const run = await answerOf(t, () => events(...parts, DONE))
    assert.deepEqual(run.records[0]!.conversations[1], {
      role: 'assistant',
      content: 'c',
      reasoning_content: 'r',
    })
    assert.equal(run.records[0]!.usage, undefined)
  })

  test('several choices in one chunk, the first one last: it is the answer', async (t) => {
    const chunk = (first: string, second: string, finish: string | null): object => ({
      choices: [
        { index: 1, delta: { content: second }, finish_reason: finish },
        { index: 0, delta: { content: first }, finish_reason: finish },
      ],
    })
    const server = await serve(t, (_request, response) => {
      beginStream(response).end(events(chunk('a', '1', null), chunk('b', '2', 'stop'), DONE))
    })
    const run = await fanout(server.url, MODEL, { input: prompts(1) })
    assert.equal(run.records[0]?.conversations[1]?.content, 'ab', run.stderr)
  })

  test('comments, CRLF events, no space after data:, an unnamed event, no [DONE]', async (t) => {
    const text =
      `: keep-alive\n\n:\r\n\r\ndata:${JSON.stringify(delta({ content: 'a' }))}\r\n\r\n` +
      `event: message\nid: 7\ndata: ${JSON.stringify(delta({ content: 'é\u2028😀' }))}\n\n` +
      `: ping\n\ndata: ${JSON.stringify(delta({}, 'stop'))}\n\ndata: ${JSON.stringify(USAGE_CHUNK)}`
    const run = await answerOf(t, () => text)
    assert.equal(run.code, 0, run.stderr)
    assert.equal(run.records[0]!.conversations[1]!.content, 'aé\u2028😀')
    assert.equal(run.records[0]!.usage.total_tokens, 14)
  })

  test('events without data say nothing, and [DONE] may have blanks around it', async (t) => {
    const blank = 'data:\n\ndata: \n\nevent: message\ndata:   \n\n'
    const said = [delta({ content: 'a' }), blank, delta({ content: 'b' }, 'stop'), blank]
    const bodies = [
      events(blank, ...said, 'data:  [DONE] \n\n', delta({ content: 'c' })),
      events(blank, ...said, 'data: [DONE] '),
    ]
    for (const body of bodies) {
      const run = await answerOf(t, () => body)
      assert.equal(run.records[0]?.conversations[1]?.content, 'ab', run.stderr)
    }
    const failed = await answerOf(t, () => 'event: error\ndata:\n\n')
    assert.equal(failed.failures[0]!.error.code, 'in-band-error')
  })

  test('[DONE] ends the answer, whatever follows or never comes', async (t) => {
    let closed = 0
    const server = await serve(t, (_, response) => {
      response.once('close', () => closed++)
      beginStream(response).write(streamed('4'))
      setImmediate(() => response.write(events(delta({ content: ' and more' }))))
      response.write(events(delta({ content: ' and so on' })))
    })
    const run = await fanout(server.url, ['-c', '1'], { input: prompts(3) })
    assert.equal(run.code, 0, run.stderr)
    for (const { conversations, timing, attempts } of run.records) {
      assert.equal(conversations[1]!.content, '4')
      assert.equal(attempts, 1)
      // It would have been taken after --idle-timeout.
      assert.ok(timing.total_ms < 300_000)
    }
    assert.equal(run.records.length, 3)
    assert.equal(server.requests.length, 3)
    while (closed < 3) await new Promise((resolve) => setImmediate(resolve))
  })

  test('a reply that ends a moment after its [DONE] keeps its connection', async (t) => {
    const sockets = new Set<unknown>()
    const server = await serve(t, (_, response) => {
      sockets.add(response.socket)
      beginStream(response).write(streamed('4'))
      setImmediate(() => response.end())
    })
    // A clock that runs fast would give up the connection of a busy machine.
    const args = ['-c', '1', '--clock-speed', '1']
    const run = await fanout(server.url, args, { input: prompts(20) })
    assert.equal(run.records.length, 20, run.stderr)
    assert.ok(sockets.size <= 2, `${sockets.size} connections`)
  })

  test('a plain JSON body, or a stream by another name, to a streaming request', async (t) => {
    const plain = await answerOf(t, () => chat('plain'))
    assert.equal(plain.records[0]!.conversations[1]!.content, 'plain')
    const server = await serve(t, (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/plain' })
      response.end(streamed('unnamed'))
    })
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.records[0]!.conversations[1]!.content, 'unnamed')
  })

  test('a stream without a content type, whatever line it begins with', async (t) => {
    const heads = [
      ': PROCESSING\n\n',
      ':\n',
      'event: message\n',
      'id: 1\n',
      'retry: 5\n',
      'data:\n\n',
    ]
    const server = await serve(t, (request, response) => {
      response.writeHead(200).end(lastMessage(request) + streamed('unnamed'))
    })
    const input = heads.map((prompt) => `${JSON.stringify({ prompt })}\n`).join('')
    const run = await fanout(server.url, [...MODEL, '--retries', '0'], { input })
    assert.equal(run.stderr.match(/^ERROR/m), null, run.stderr)
    for (const { conversations } of run.records) assert.equal(conversations[1]!.content, 'unnamed')
    assert.equal(run.records.length, heads.length)
  })

  test('a whole answer under the content type of a stream', async (t) => {
    const body = JSON.stringify(chat('whole'))
    const server = await serve(t, async (request, response) => {
      const start = lastMessage(request)
      beginStream(response)
      for (const piece of [start, body.slice(0, 9), body.slice(9)]) {
        response.write(piece)
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    })
    const input = ['', '\n  ', '\r\n'].map((prompt) => `${JSON.stringify({ prompt })}\n`).join('')
    const run = await fanout(server.url, [...MODEL, '--retries', '0'], { input })
    assert.equal(run.stderr.match(/^ERROR/m), null, run.stderr)
    for (const { conversations } of run.records) assert.equal(conversations[1]!.content, 'whole')
    assert.equal(run.records.length, 3)
    const refused = await answerOf(t, () => '{"error":{"message":"sorry"}}')
    assert.match(refused.failures[0]!.error.message, /sorry/)
  })

  test('a stream one byte at a time', async (t) => {
    const bytes = Buffer.from(streamed('é😀'))
    const server = await serve(t, async (_request, response) => {
      beginStream(response)
      for (const byte of bytes) {
        response.write(Buffer.from([byte]))
        await new Promise((resolve) => setImmediate(resolve))
      }
      response.end()
    })
    const run = await fanout(server.url, MODEL, { input })
    assert.equal(run.records[0]!.conversations[1]!.content, 'é😀')
  })

  test('tool calls in pieces, and no content', async (t) => {
    const call = (args: string, more: object = {}): object =>
      delta({ tool_calls: [{ index: 0, function: { arguments: args }, ...more }] })
    const head = { id: 'c1', type: 'function', function: { name: 'f', arguments: '' } }
    const parts = [call('', head), call('{"a"'), call(':1}'), delta({}, 'tool_calls')]
    const run = await answerOf(t, () => events(...parts, DONE))
    assert.equal(run.code, 0, run.stderr)
    const [, answer] = run.records[0]!.conversations as unknown as [
      unknown,
      { content: null; tool_calls: { function: { name: string; arguments: string } }[] },
    ]
    assert.equal(answer.content, null)
    assert.deepEqual(answer.tool_calls[0]!.function, { name: 'f', arguments: '{"a":1}' })
  })

  test('lone surrogates and control characters in answers stay JSON', async (t) => {
    const content = 'a\ud800b\u0000\u001b\n"\\'
    const run = await answerOf(t, () => chat(content))
    assert.equal(run.records[0]!.conversations[1]!.content, content)
    assert.ok(run.lines[0]!.includes('\\ud800b\\u0000'), run.lines[0])
  })

  test('an empty finish_reason is none, whether an event or a whole answer has it', async (t) => {
    const parts = ['a', 'b', 'c', 'd'].map((content) => delta({ content }, ''))
    const said = await answerOf(t, () => events(...parts, delta({}, 'stop'), delta({}, ''), DONE))
    assert.equal(said.records[0]!.conversations[1]!.content, 'abcd', said.stderr)
    assert.equal(said.records[0]!.finish_reason, 'stop')
    const whole = await answerOf(t, () => chat('abcd', {}, { finish_reason: '' }), ['--no-stream'])
    assert.equal(whole.records[0]!.finish_reason, null)
  })

  test('finish_reason length, content_filter and empty content are kept and counted', async (t) => {
    for (const [reason, count] of [
      ['length', 'length'],
      ['content_filter', 'content_filter'],
    ]) {
      const run = await answerOf(t, () => events(delta({ content: 'x' }, reason!), DONE))
      assert.equal(run.code, 0, run.stderr)
      assert.equal(run.records[0]!.finish_reason, reason)
      const finish = (run.stats as unknown as { finish: Record<string, number> }).finish
      assert.equal(finish[count!], 1)
      assert.match(run.stderr, /^fanout-complete: 1 record: 1 answered, /m)
      const cut = 'warning: 1 answer is cut by the token limit (finish_reason length)\n'
      assert.equal(run.stderr.includes(cut), reason === 'length', run.stderr)
    }
    const empty = await answerOf(t, () => events(delta({ content: '' }), delta({}, 'stop'), DONE))
    assert.equal(empty.records[0]!.conversations[1]!.content, '')
    assert.equal((empty.stats as unknown as { finish: { empty: number } }).finish.empty, 1)
    assert.match(
      empty.stderr,
      /warning: 1 answer is empty \(dedupe-completed --redo empty runs it again\)$/m,
    )
  })

  test('--on-length fail', async (t) => {
    const reply = events(delta({ content: 'half' }, 'length'), DONE)
    const run = await answerOf(t, () => reply, ['--on-length', 'fail'])
    assert.equal(run.code, 1)
    assert.deepEqual(run.lines, [])
    assert.equal(run.failures[0]!.error.code, 'cut-by-length')
    assert.equal(run.failures[0]!.partial.content, 'half')
    assert.deepEqual(run.failures[0]!.input, { id: 1, prompt: 'p' })
  })

  test('turns: one that is cut counts, and with --on-length fail is the end of the record', async (t) => {
    let tries = 0
    const server = await serve(t, (request, response) => {
      const text = lastMessage(request)
      if (text.startsWith('busy') && tries++ % 2 === 0) return json(response, {}, 500)
      json(
        response,
        chat(`re ${text}`, {}, { finish_reason: text.endsWith('cut') ? 'length' : 'stop' }),
      )
    })
    const input =
      '{"id":1,"turns":["cut","b"]}\n{"id":2,"turns":["a","busy cut","c"]}\n{"id":3,"turns":["a"]}\n'
    const asked = (args: string[]) => fanout(server.url, [...MODEL, '-c', '1', ...args], { input })
    const kept = await asked([])
    assert.equal(kept.code, 0, kept.stderr)
    assert.equal(kept.stats.finish.length, 2)
    assert.equal(server.requests.length, 7)
    const run = await asked(['--on-length', 'fail'])
    assert.equal(run.code, 1)
    assert.deepEqual(
      run.records.map(({ id }) => id),
      [3],
    )
    assert.equal(run.stats.finish.length, 2)
    assert.equal(server.requests.length, 7 + 5)
    // What was generated was paid.
    assert.equal(run.stats.tokens.completion, 4 * 5)
    const [first, second] = run.failures.toSorted((a, b) => Number(a.id) - Number(b.id))
    assert.deepEqual([first!.error.code, first!.error.attempts], ['cut-by-length', 1])
    assert.deepEqual(first!.partial, { reasoning_content: '', content: 're cut' })
    assert.deepEqual([second!.error.code, second!.error.attempts], ['cut-by-length', 3])
    assert.equal(second!.partial.content, 're busy cut')
    assert.deepEqual(second!.partial.conversations, [
      { role: 'user', content: 'a' },
      { role: 'assistant', content: 're a' },
    ])
  })

  test('--on-length fail where all fail so goes on under --tpm', async (t) => {
    const reply = events(delta({ content: 'half' }, 'length'), USAGE_CHUNK, DONE)
    const server = await serve(t, (_, response) => void beginStream(response).end(reply))
    const args = ['--on-length', 'fail', '--tpm', '1000000', '-c', '2']
    const run = await fanout(server.url, args, { input: prompts(12) })
    assert.equal(run.failures.length, 12, run.stderr)
    assert.equal(run.stats.left, 0)
  })
})
