import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  version: string
  bin: Record<string, string>
}
const binaries = readdirSync(join(root, 'bin')).map((file) => file.replace(/\.ts$/, ''))

test('every binary has its line in package.json, its tests and its section in README.md', () => {
  const readme = readFileSync(join(root, 'README.md'), 'utf8')
  const tests = readdirSync(join(root, 'test/bin'))
  for (const name of binaries) {
    assert.equal(manifest.bin[name], `dist/bin/${name}.js`)
    assert.ok(readme.includes(`\n### ${name}\n`), `README.md has no section ${name}`)
    const [stem] = name.split('-')
    const own = tests.some((file) => file.startsWith(name) || file.startsWith(`${stem}-`))
    assert.ok(own, `test/bin has nothing for ${name}`)
  }
  assert.deepEqual(Object.keys(manifest.bin).sort(), binaries.sort())
})

test('every binary says its version, its help and its completions', () => {
  for (const name of binaries) {
    const file = join(root, 'dist/bin', `${name}.js`)
    assert.ok(existsSync(file), `${file} is not built`)
    const run = (...args: string[]): string => execFileSync(file, args, { encoding: 'utf8' })
    assert.equal(run('--version'), `${name} (completion-pipes) ${manifest.version}\n`)
    const help = run('--help')
    const [summary] = help.split('\n')
    assert.ok(summary?.startsWith(`${name}: `), summary)
    assert.ok(help.indexOf('Examples:') < help.indexOf('--help'), 'examples come first')
    for (const shell of ['bash', 'zsh', 'fish']) {
      assert.match(run('--completion', shell), new RegExp(name))
    }
  }
})
