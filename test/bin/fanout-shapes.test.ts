import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fanout } from '../support/fanout.ts'
import { answerWell, beginStream, DONE, delta, events, json, serve } from '../support/servers.ts'

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
