/**
 * `npm start`: the promise, shown. Questions go through dedupe-completed | fanout-complete to a
 * server that fails in several ways; the pipeline is killed half-way, the file repaired, the
 * pipeline run again; then every number is checked. Exit code 1 where one is not what it must be.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** The server's clock and ours run this many times faster than the wall. */
const SPEED = 60
const FAULTS = ['503:5%', 'stall:3%', 'cut:3%', 'reset:3%']
const TOOLS = [
  'dedupe-completed',
  'fanout-complete',
  'repair-truncated',
  'simulate-server',
  'validate-jsonl',
]
const OUTPUT = 'raw_responses.jsonl'

const folder = mkdtempSync(join(tmpdir(), 'completion-pipes-demo-'))
const questions = fileURLToPath(new URL('../../examples/questions.jsonl', import.meta.url))
const environment = { ...process.env, PATH: `${folder}/bin${delimiter}${process.env.PATH}` }

interface Row {
  label: string
  value: string
  /** What the number must be, where it is no matter of chance. */
  right: boolean
}

async function demonstrate(): Promise<Row[]> {
  makeTools()
  const { server, url } = await startServer()
  try {
    const pipeline = (left: number): string =>
      `dedupe-completed -q --completed ${OUTPUT} '${questions}' | ` +
      `fanout-complete --url ${url} --clock-speed ${SPEED} -c 32 --idle-timeout 60s ` +
      `--progress-every 60s --total ${left} >> ${OUTPUT}`

    say('1. The first run, killed (SIGKILL) when half is done')
    await killHalfway(run(pipeline(lines(questions))))
    tearLastLine()

    say('2. Repair: what a killed writer or a power cut leaves')
    const torn = await removedBytes()

    say('3. The same pipeline again: what is answered is not asked again')
    const before = lines(join(folder, OUTPUT))
    const again = await finished(run(pipeline(lines(questions) - before)))

    say('4. Is the file right?')
    const valid = await finished(
      run(`validate-jsonl -q --require id,status,conversations ${OUTPUT}`),
    )
    return [...check(before, torn, await serverStats(url)), ...verdicts(again, valid)]
  } finally {
    server.kill('SIGTERM')
  }
}

/** The binaries of this checkout under their names. */
function makeTools(): void {
  mkdirSync(join(folder, 'bin'))
  for (const tool of TOOLS) {
    const file = fileURLToPath(new URL(`../bin/${tool}.js`, import.meta.url))
    symlinkSync(file, join(folder, 'bin', tool))
  }
}

async function startServer(): Promise<{ server: ChildProcess; url: string }> {
  const faults = FAULTS.flatMap((fault) => ['--fault', fault])
  const args = ['-q', '--port', '0', '--speed', String(SPEED), '--mean-tokens', '600', ...faults]
  say(`Starting simulate-server ${args.slice(3).join(' ')}`)
  const server = spawn('simulate-server', args, {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [line] = (await once(server.stdout, 'data')) as [Buffer]
  return { server, url: line.toString().trim() }
}

/** Runs a shell command in the folder of the demonstration, in a process group of its own. */
function run(command: string): ChildProcess {
  console.log(`$ ${command}`)
  return spawn(command, {
    shell: true,
    detached: true,
    cwd: folder,
    env: environment,
    stdio: ['ignore', 'inherit', 'inherit'],
  })
}

async function finished(child: ChildProcess): Promise<number | null> {
  const [code] = (await once(child, 'close')) as [number | null]
  return code
}

async function killHalfway(child: ChildProcess): Promise<void> {
  const half = lines(questions) / 2
  const gone = finished(child)
  while (child.exitCode === null && lines(join(folder, OUTPUT)) < half) await sleep(20)
  if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL')
  await gone
}

/**
 * Whole-line writes are hardly ever torn by a kill alone; what a power cut does to the last page of
 * a file is done by hand.
 */
function tearLastLine(): void {
  const file = join(folder, OUTPUT)
  const bytes = readFileSync(file)
  const lastLine = bytes.lastIndexOf(0x0a, bytes.length - 2) + 1
  const half = Math.floor((bytes.length - lastLine) / 2)
  truncateSync(file, bytes.length - half)
  console.log(`(killed; and the last ${half} bytes cut off, as a power cut would)`)
}

async function removedBytes(): Promise<number> {
  const file = join(folder, OUTPUT)
  const before = statSync(file).size
  const code = await finished(run(`repair-truncated -i ${OUTPUT}`))
  if (code !== 0) throw new Error(`repair-truncated ended with exit code ${code}`)
  return before - statSync(file).size
}

interface ServerStats {
  tokens: { generated: number; delivered: number; wasted: number }
}

async function serverStats(url: string): Promise<ServerStats> {
  const response = await fetch(new URL('/stats', url))
  return (await response.json()) as ServerStats
}

interface Answer {
  id: number
  usage: { completion_tokens: number }
}

function check(before: number, torn: number, stats: ServerStats): Row[] {
  const wanted = records<{ question_id: number }>(questions).map((record) => record.question_id)
  const answers = records<Answer>(join(folder, OUTPUT))
  const ids = new Set(answers.map((answer) => answer.id))
  const lost = wanted.filter((id) => !ids.has(id)).length
  const duplicates = answers.length - ids.size
  const kept = answers.reduce((sum, answer) => sum + answer.usage.completion_tokens, 0)
  const { generated, wasted } = stats.tokens
  return [
    row('questions', wanted.length, true),
    row('answered before the kill', before, before > 0 && before < wanted.length),
    row('torn bytes removed', torn, torn > 0),
    row('answered after', answers.length - before, answers.length - before > 0),
    row('duplicates', duplicates, duplicates === 0),
    row('lost', lost, lost === 0),
    row('tokens generated by the server', generated, generated >= kept),
    row('tokens kept', kept, kept > 0),
    row('tokens lost to faults and the kill', wasted, wasted >= 0),
    row('tokens of the torn record', generated - kept - wasted, generated - kept - wasted > 0),
  ]
}

function verdicts(again: number | null, valid: number | null): Row[] {
  return [
    row('exit code of the second run', again ?? -1, again === 0),
    row('exit code of validate-jsonl', valid ?? -1, valid === 0),
  ]
}

function row(label: string, value: number, right: boolean): Row {
  return { label, value: value.toLocaleString('en'), right }
}

function lines(file: string): number {
  const bytes = statSync(file, { throwIfNoEntry: false }) ? readFileSync(file) : Buffer.alloc(0)
  let count = 0
  for (const byte of bytes) if (byte === 0x0a) count++
  return count
}

function records<T>(file: string): T[] {
  const text = readFileSync(file, 'utf8').trim()
  return text.split('\n').map((line) => JSON.parse(line) as T)
}

function say(text: string): void {
  console.log(`\n${text}`)
}

try {
  const rows = await demonstrate()
  const width = Math.max(...rows.map(({ label }) => label.length))
  console.log()
  for (const { label, value, right } of rows) {
    console.log(`${label.padEnd(width)}  ${value.padStart(8)}${right ? '' : '   <- WRONG'}`)
  }
  if (rows.some(({ right }) => !right)) {
    console.error(`\nThe promise does not hold; see ${folder}`)
    process.exitCode = 1
  } else {
    console.log('\nNo sample lost, none asked twice that had reached the file.')
    rmSync(folder, { recursive: true })
  }
} catch (error) {
  console.error(`the demonstration failed: ${(error as Error).message}; see ${folder}`)
  process.exitCode = 1
}
