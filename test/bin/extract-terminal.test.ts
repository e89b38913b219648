import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type BlendRow, blendParquet } from '../support/parquet.ts'
import { newFolder } from '../support/run.ts'
import { hasTerminals, onTerminal } from '../support/terminal.ts'

const ROWS = 60_000
const SUMMARY = `extract-prompts: ${ROWS} rows: ${ROWS} prompts, 0 unusable\r\n`
const BAR = /^(\[#*\.*\] )?(\d+) %, \d+ rows read, \d+ prompts, \d+ unusable$/

/** What takes a picture away. */
const CLEAR = '\r\u001b[K'

/** The pictures that a terminal was shown one over the other, and the text that stayed. */
function pictures(shown: string): { drawn: string[]; stayed: string } {
  const parts = shown.split('\r')
  const drawn = parts.filter((part) => part.endsWith('\u001b[K')).map((part) => part.slice(0, -3))
  const stayed = shown.slice(shown.lastIndexOf(CLEAR) + CLEAR.length)
  return { drawn: drawn.filter((part) => part !== ''), stayed }
}

const skip = hasTerminals ? false : 'PYTHON IS NOT INSTALLED: no terminal can be made'

describe('the progress of extract-prompts on a terminal', { skip }, () => {
  const cwd = newFolder()
  const rows: BlendRow[] = Array.from({ length: 1000 }, (_, index) => ({
    conversations: [{ from: 'human', value: `${index} ${'why? '.repeat(50)}` }],
    source: 'x',
  }))
  writeFileSync(join(cwd, 'd.parquet'), blendParquet(rows, { times: ROWS / rows.length }))
  const line = JSON.stringify({ prompt: 'why? '.repeat(50) })
  writeFileSync(join(cwd, 'd.jsonl'), `${line}\n`.repeat(ROWS))

  for (const file of ['d.parquet', 'd.jsonl']) {
    test(`a bar with the share that is read, and the counts: ${file}`, async () => {
      const { code, shown } = await onTerminal('extract-prompts', [file], {
        cwd,
        columns: 80,
        output: 'out',
      })
      const { drawn, stayed } = pictures(shown)
      assert.deepEqual([code, stayed], [0, SUMMARY])
      assert.ok(drawn.length > 0, shown)
      const shares = drawn.map((text) => Number(BAR.exec(text)?.[2]))
      assert.ok(
        shares.every((share, index) => share >= (shares[index - 1] ?? 0) && share <= 100),
        drawn.join('\n'),
      )
      assert.match(drawn[0]!, /^\[\.{20}\] 0 %, 0 rows read/)
      for (const text of drawn) assert.ok(text.length < 80)
      assert.equal(readFileSync(join(cwd, 'out'), 'utf8').split('\n').length, ROWS + 1)
    })
  }

  test('a narrow terminal has the counts alone; messages stay above', async () => {
    writeFileSync(join(cwd, 'bad.jsonl'), '{"prompt":"q"}\n{"prompt":7}\n')
    const { code, shown } = await onTerminal('extract-prompts', ['bad.jsonl'], {
      cwd,
      columns: 40,
      output: 'out',
    })
    assert.equal(code, 1)
    const cleared = shown.slice(shown.indexOf(`${CLEAR}extract-prompts: bad.jsonl:2: `))
    assert.match(cleared.slice(CLEAR.length), /^extract-prompts: .*\[wrong-type\]\r\n\r\d/)
    for (const text of pictures(shown).drawn) assert.ok(text.length < 40 && !text.includes('['))
  })

  for (const [why, args, env] of [
    ['--quiet', ['-q'], {}],
    ['NO_COLOR', [], { NO_COLOR: '1' }],
    ['TERM=dumb', [], { TERM: 'dumb' }],
  ] as const) {
    test(`none with ${why}`, async () => {
      const options = { cwd, columns: 80, output: 'out', env }
      const { code, shown } = await onTerminal('extract-prompts', [...args, 'd.jsonl'], options)
      assert.deepEqual([code, shown], [0, why === '--quiet' ? '' : SUMMARY])
    })
  }
})
