import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { executable, newFolder, run } from '../support/run.ts'

const RECORDS = 240
const chromium = ['chromium', 'chromium-browser', 'google-chrome'].find(
  (name) => spawnSync(name, ['--version']).status === 0,
)

/** What a browser makes of the page: laid out, and asked. */
interface Seen {
  width: number
  scrollWidth: number
  /** How far the widest cell of a table reaches. */
  cellsTo: number
  charts: { width: number; height: number; name: string | null; marks: number; texts: string[] }[]
  background: string
  ink: string
  loaded: number
  text: string
}

const LOOK = `<script>addEventListener('load', () => {
  const style = getComputedStyle(document.body)
  const charts = [...document.querySelectorAll('svg[role=img]')].map((svg) => {
    const { width, height } = svg.getBoundingClientRect()
    const marks = svg.querySelectorAll('path, rect, circle, line').length
    const texts = [...svg.querySelectorAll('text')].map((text) => text.textContent)
    return { width, height, name: svg.getAttribute('aria-label'), marks, texts }
  })
  const ends = [...document.querySelectorAll('td, th')].map((cell) => {
    const text = document.createRange()
    text.selectNodeContents(cell)
    return text.getBoundingClientRect().right
  })
  parent.document.body.innerHTML = '<pre id="seen"></pre>'
    .replace('></', '>' + encodeURIComponent(JSON.stringify({
      width: innerWidth, scrollWidth: document.documentElement.scrollWidth, charts,
      cellsTo: Math.max(0, ...ends),
      background: style.backgroundColor, ink: style.color,
      loaded: performance.getEntriesByType('resource').length, text: document.body.innerText,
    })) + '</')
})</script>`

/** Opens a page in a headless browser, in a frame of a width. Its policy allows no script, so that the copy goes without. */
function look(folder: string, { name = 'report.html', dark = false, width = 1100 } = {}): Seen {
  const page = readFileSync(join(folder, name), 'utf8')
  assert.ok(page.includes('Content-Security-Policy'))
  const framed = join(folder, 'framed.html')
  const inner = page.replace(/<meta http-equiv[^>]+>/, '').replace('</body>', `${LOOK}</body>`)
  // A window is never as narrow as a phone.
  const source = inner.replaceAll('&', '&amp;').replaceAll('"', '&quot;')
  writeFileSync(
    framed,
    `<iframe style="border:0;width:${width}px;height:2000px" srcdoc="${source}"></iframe>`,
  )
  const args = [
    '--headless=new',
    '--no-sandbox',
    '--disable-gpu',
    `--user-data-dir=${join(folder, 'profile')}`,
    '--window-size=1300,2100',
    `--blink-settings=preferredColorScheme=${dark ? 0 : 1}`,
    '--dump-dom',
    `file://${framed}`,
  ]
  const { stdout, stderr } = spawnSync(chromium!, args, { encoding: 'utf8', timeout: 120_000 })
  const seen = /<pre id="seen">([^<]+)</.exec(stdout)?.[1]
  assert.ok(seen !== undefined, stderr.slice(-2000))
  return JSON.parse(decodeURIComponent(seen)) as Seen
}

describe('report-run over a run', () => {
  const folder = newFolder()
  const FILES = ['a.jsonl', '--failures', 'f.jsonl', '--stats', 's.json', '--trace', 't.jsonl']

  before(async () => {
    const serverArgs = [
      '--port',
      '0',
      '--speed',
      '100',
      '--mean-tokens',
      '300',
      '--fault',
      '503:10%',
    ]
    const server = spawn(process.execPath, [executable('simulate-server'), ...serverArgs])
    const [first] = (await once(server.stderr, 'data')) as [Buffer]
    const url = /http:\/\/\S+?\/v1/.exec(first.toString())![0]
    const input = Array.from({ length: RECORDS }, (_, id) => `{"id":${id},"prompt":"q ${id}"}\n`)
    const given = '--clock-speed 100 --retries 0 -c 16 -o a.jsonl --failures f.jsonl --stats s.json'
    const args = [...given.split(' '), '--trace', 't.jsonl', '--url', url]
    const result = await run('fanout-complete', args, { cwd: folder, input: input.join('') })
    server.kill()
    assert.equal(result.code, 1, result.stderr)
  })
  after(() => spawnSync('rm', ['-r', folder]))

  test('on the terminal: all that is asked of it', async () => {
    const result = await run('report-run', FILES, { cwd: folder })
    assert.equal(result.code, 0, result.stderr)
    const text = result.stdout.toString()
    for (const part of [
      /^Records +240: \d+ answered, \d+ failed, 0 invalid$/m,
      /^Finish +stop \d+/m,
      /^Tokens +\d+ prompt, \d+ completion/m,
      /^Reasoning +\d+\.\d %$/m,
      /^tokens\/s +[▁-█ ]+ most \d+$/m,
      /^Total time: mean .*, p50 .*, p99 .*, max /m,
      /^First token: mean /m,
      /^Answer length: mean /m,
      /^ +http-503 +\d+$/m,
      /^ +60 s +kills +\d+ \(\d+\.\d %\), /m,
      /^ +3600 s +kills +0 /m,
      /--timeout: leave it off/,
      /--concurrency: .* answers\/s \* /,
    ]) {
      assert.match(text, part)
    }
  })

  test('--json: the counts are those of the files', async () => {
    const result = await run('report-run', [...FILES, '--json'], { cwd: folder })
    const report = JSON.parse(result.stdout.toString())
    const lines = (name: string): { usage?: { completion_tokens: number } }[] =>
      readFileSync(join(folder, name), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line))
    const answers = lines('a.jsonl')
    assert.equal(report.answered, answers.length)
    assert.equal(report.failed, lines('f.jsonl').length)
    assert.equal(report.answered + report.failed, RECORDS)
    assert.deepEqual(report.failures, { 'http-503': report.failed })
    const tokens = answers.reduce((sum, answer) => sum + answer.usage!.completion_tokens, 0)
    assert.equal(report.tokens.completion, tokens)
  })

  test('a reader that goes early is no error', async () => {
    const script = '"$0" "$@" | head -1'
    const { code, stdout, stderr } = await run('report-run', FILES, { cwd: folder, shell: script })
    assert.deepEqual([code, stderr], [0, ''])
    assert.match(stdout.toString(), /^Records/)
  })

  test('--html in a browser: charts in every light, on a phone, nothing from elsewhere', {
    skip: chromium === undefined ? 'chromium is not installed: NOT TESTED' : false,
  }, async () => {
    const result = await run('report-run', [...FILES, '--html', 'report.html'], { cwd: folder })
    assert.equal(result.code, 0, result.stderr)
    const light = look(folder)
    const dark = look(folder, { dark: true })
    const phone = look(folder, { width: 360 })
    assert.ok(light.charts.length >= 7, `${light.charts.length} charts`)
    for (const { charts, width, scrollWidth, loaded, text } of [light, dark, phone]) {
      assert.equal(loaded, 0)
      assert.ok(scrollWidth <= width, `${scrollWidth} px wide on ${width}`)
      assert.match(text, /Report of a run[\s\S]+Next time/)
      for (const { width: wide, height, name, marks } of charts) {
        assert.ok(wide > 200 && height > 60 && wide <= width && marks > 3, `${name}`)
        assert.ok(name)
      }
    }
    assert.equal(new Set(light.charts.map(({ name }) => name)).size, light.charts.length)
    assert.notEqual(light.background, dark.background)
    assert.notEqual(light.ink, dark.ink)
  })

  test('--html on a phone: tables of ordinary times and long names fit, seconds are told in seconds', {
    skip: chromium === undefined ? 'chromium is not installed: NOT TESTED' : false,
  }, async () => {
    const long = [
      'x'.repeat(80),
      'a reason of several words that goes on for a line and more'.repeat(2),
    ]
    const answer = (id: number): string => {
      const started_at = new Date(Date.UTC(2026, 0, 5) + 4000 * id).toISOString()
      const total_ms = Math.round(133_000 * 1.06 ** (id - 20))
      const timing = { started_at, first_token_ms: total_ms / 500, total_ms }
      const usage = { prompt_tokens: 1, completion_tokens: 123_456 }
      const conversations = [{ role: 'assistant', content: 'a' }]
      const finish_reason = ['stop', ...long][id % 3]
      const answered = { id, status: 'success', conversations, finish_reason, usage, timing }
      return `${JSON.stringify(answered)}\n`
    }
    const failure = (code: string, id: number): string =>
      `${JSON.stringify({ id: `f${id}`, status: 'error', error: { code } })}\n`
    const input = [...Array.from({ length: 60 }, (_, id) => answer(id)), ...long.map(failure)]
    const states = [1, 2, 3].map((limit) => {
      return `${JSON.stringify({ time: `2026-01-05T00:00:0${limit}Z`, in_flight: 1, limit })}\n`
    })
    writeFileSync(join(folder, 'states'), states.join(''))
    const args = ['--html', 'long.html', '--trace', 'states']
    await run('report-run', args, { cwd: folder, input: input.join('') })
    for (const width of [320, 360, 1200]) {
      const seen = look(folder, { name: 'long.html', width })
      assert.equal(seen.width, width)
      assert.match(seen.text, /\b\d+ m \d+ s[\s\S]*x{80}/)
      assert.ok(seen.scrollWidth <= width, `${seen.scrollWidth} px wide on ${width}`)
      assert.ok(seen.cellsTo <= width, `cells reach ${seen.cellsTo} on ${width}`)
      const texts = seen.charts
        .filter(({ name }) => ['Total time', 'First token', 'Failures by code'].includes(name!))
        .flatMap((chart) => chart.texts)
      assert.ok(texts.length > 10)
      for (const text of texts) assert.doesNotMatch(text, /^[\d.]+[a-zµ]$/)
      // The trace tells no first tokens: of nothing there is no chart.
      const names = seen.charts.map(({ name }) => name)
      assert.ok(names.includes('Limit and requests in flight'))
      assert.ok(!names.includes('First token over time'))
      assert.ok(!seen.charts.some((chart) => chart.texts.some((text) => text.startsWith('0.0000'))))
    }
  })

  test('--html: what comes from data is text, never markup', async () => {
    const hostile = '<script>alert(1)</script><img src=x onerror=alert(2)>'
    const record = (id: number): string =>
      `${JSON.stringify({ id, status: 'success', conversations: [], finish_reason: hostile })}\n`
    writeFileSync(join(folder, 'h.jsonl'), record(1) + record(2))
    const result = await run('report-run', ['h.jsonl', '--html', 'h.html'], { cwd: folder })
    assert.equal(result.code, 0, result.stderr)
    const page = readFileSync(join(folder, 'h.html'), 'utf8')
    assert.ok(
      page.includes('&lt;script&gt;') && !page.includes('<script') && !page.includes('<img'),
    )
  })

  test('batch lines and bare completions are answers too', async () => {
    const usage = { prompt_tokens: 2, completion_tokens: 7 }
    const body = { choices: [{ finish_reason: 'stop', message: { content: 'x' } }], usage }
    const lines = [
      { id: 'b', custom_id: 'c', response: { status_code: 200, body }, error: null },
      { id: 'b', custom_id: 'd', response: { status_code: 500, body: {} }, error: null },
      { id: 3, status: 'success', prompt: 'p', text: 't', finish_reason: 'length', usage },
    ]
    const input = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
    const result = await run('report-run', ['--json'], { input })
    const report = JSON.parse(result.stdout.toString())
    assert.deepEqual([report.answered, report.failed, report.cut_by_length], [2, 1, 1])
    assert.equal(report.tokens.completion, 14)
  })
})
