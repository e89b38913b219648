// Makes a clone ready: installs what is missing and builds what is stale, and nothing else, so that
// `npm start` and `npm test` work as the first command and are fast as the second.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))

function modified(path) {
  return existsSync(path) ? statSync(path).mtimeMs : 0
}

function newest(path) {
  const inside = statSync(path).isDirectory() ? readdirSync(path) : []
  return Math.max(modified(path), ...inside.map((name) => newest(`${path}/${name}`)))
}

if (modified(`${root}node_modules/.package-lock.json`) < modified(`${root}package-lock.json`)) {
  console.error('installing packages (npm ci)')
  // npm ci also builds, by the script `prepare`.
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: root, stdio: ['ignore', 2, 2] })
}
const sources = ['bin', 'src', 'examples', '.ci/build.mjs'].map((path) => newest(root + path))
if (modified(`${root}dist/.built`) < Math.max(...sources)) {
  console.error('building')
  execFileSync(process.execPath, [`${root}.ci/build.mjs`], { stdio: 'inherit' })
}
