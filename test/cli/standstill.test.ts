import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newFolder } from '../support/run.ts'

test('a run that waits for what cannot come says so and ends with 2, never with silence', () => {
  const file = join(newFolder(), 'stand-still.mjs')
  const main = new URL('../../src/cli/main.ts', import.meta.url).href
  writeFileSync(
    file,
    `import { main } from ${JSON.stringify(main)}
    const command = { name: 'stand-still', options: {}, run: () => new Promise(() => {}) }
    await main(command, import.meta.url)`,
  )
  const { status, stderr } = spawnSync(process.execPath, ['--import', 'tsx', file], {
    encoding: 'utf8',
    cwd: new URL('../..', import.meta.url).pathname,
  })
  assert.equal(status, 2)
  assert.match(stderr, /stand-still: .*waits for nothing: this is a bug in stand-still/)
})
