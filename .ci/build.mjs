// Compiles bin/, src/ and examples/ into dist/. Runs on plain Node, before anything is built.
import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const compiler = `${root}node_modules/typescript/bin/tsc`

// An installed package holds dist/ and no compiler.
if (existsSync(compiler) && existsSync(`${root}src`)) {
  rmSync(`${root}dist`, { recursive: true, force: true })
  execFileSync(process.execPath, [compiler, '-p', `${root}tsconfig.json`], { stdio: 'inherit' })
  for (const name of readdirSync(`${root}dist/bin`)) chmodSync(`${root}dist/bin/${name}`, 0o755)
  writeFileSync(`${root}dist/.built`, '')
}
