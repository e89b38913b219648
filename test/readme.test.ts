import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { type Simulator, startSimulator } from '../src/simulator/server.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const hasJq = spawnSync('jq', ['--version']).status === 0

/** A command of a console block and the lines that README.md shows below it. */
interface Step {
  command: string
  shown: string[]
  line: number
}

function stepsOf(markdown: string): Step[] {
  const steps: Step[] = []
  let inBlock = false
  for (const [index, line] of markdown.split('\n').entries()) {
    if (line.startsWith('```')) inBlock = line === '```console'
    else if (inBlock && line.startsWith('$ ')) {
      steps.push({ command: line.slice(2), shown: [], line: index + 1 })
    } else if (inBlock) steps.at(-1)?.shown.push(line)
  }
  return steps
}

/** `…` in a shown line stands for anything. */
function isShown(shown: string, printed: string): boolean {
  const parts = shown.split('…').map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
  return new RegExp(`^${parts.join('.*')}$`).test(printed)
}

/** Whether both hold the same lines; the order of two streams on one terminal is chance. */
function assertShown(step: Step, printed: string[]): void {
  const left = [...printed]
  for (const line of step.shown) {
    const at = left.findIndex((other) => isShown(line, other))
    const message = `README.md:${step.line}: '${line}' was not printed; left are:\n${left.join('\n')}`
    assert.ok(at >= 0, message)
    left.splice(at, 1)
  }
  assert.deepEqual(left, [], `README.md:${step.line}: printed but not shown`)
}

describe('the examples of README.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'readme-'))
  let server: Simulator

  before(async () => {
    mkdirSync(join(folder, 'bin'))
    for (const file of readdirSync(join(root, 'dist/bin'))) {
      symlinkSync(join(root, 'dist/bin', file), join(folder, 'bin', file.replace(/\.js$/, '')))
    }
    copyFileSync(join(root, 'examples/questions.jsonl'), join(folder, 'questions.jsonl'))
    server = await startSimulator({ speed: 2000, meanTokens: 100, keepAliveMs: 0 })
  })

  after(async () => {
    await server.close()
    rmSync(folder, { recursive: true })
  })

  const run = (command: string): Promise<string[]> =>
    new Promise((resolve) => {
      const child = spawn('bash', ['-c', command], {
        cwd: folder,
        env: {
          ...process.env,
          PATH: `${folder}/bin${delimiter}${process.env.PATH}`,
          OPENAI_BASE_URL: `${server.url}/v1`,
          LC_ALL: 'C',
        },
      })
      let text = ''
      child.stdout.on('data', (chunk) => (text += chunk))
      child.stderr.on('data', (chunk) => (text += chunk))
      child.on('close', () => resolve(text.split('\n').slice(0, -1)))
    })

  // A command that ends in & goes on into the next one.
  const steps = stepsOf(readme)
  for (let index = 0; index < steps.length; index++) {
    const step = steps[index]!
    if (step.command.endsWith('&')) {
      const next = steps[++index]!
      step.command += `\n${next.command}`
      step.shown.push(...next.shown)
    }
    const skip = step.command.includes('jq') && !hasJq ? 'jq is not installed: NOT TESTED' : false
    test(`line ${step.line}: ${step.command.slice(0, 60)}`, { skip }, async () => {
      assertShown(step, await run(step.command))
    })
  }
})
