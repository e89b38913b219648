import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'
import { prompts } from './fanout.ts'
import { newFolder } from './run.ts'
import type { Lifetime } from './servers.ts'

export const examples = fileURLToPath(new URL('../../examples', import.meta.url))

/** A folder as the tasks of a run share it, with the questions in it, and a server that fails at times. */
export interface Run {
  cwd: string
  server: Simulator
  env: Record<string, string>
  /** Runs a program in the folder, beside the server that is in this process. */
  sh: (program: string, ...args: string[]) => Promise<Printed>
}

interface Printed {
  status: number | null
  text: string
}

export async function newRun(lifetime: Lifetime, records: number, speed: number): Promise<Run> {
  const server = await startSimulator({
    speed,
    meanTokens: 400,
    maxTokens: 2000,
    maxNumSeqs: 64,
    faults: ['503:1%', 'reset:1%', 'cut:1%', 'garbage:1%'],
  })
  lifetime.after(() => server.close())
  const cwd = newFolder()
  const bin = join(cwd, 'bin')
  mkdirSync(bin)
  const dist = fileURLToPath(new URL('../../dist/bin', import.meta.url))
  for (const file of readdirSync(dist)) {
    symlinkSync(join(dist, file), join(bin, file.replace(/\.js$/, '')))
  }
  writeFileSync(join(cwd, 'questions.jsonl'), prompts(records))
  const env = {
    ...(process.env as Record<string, string>),
    PATH: `${bin}:${process.env.PATH}`,
    URL: `${server.url}/v1`,
    MODEL: 'simulated',
    FANOUT_OPTIONS: `-c 8 --clock-speed ${speed} --retries 20`,
  }
  const sh = async (program: string, ...args: string[]): Promise<Printed> => {
    const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    let text = ''
    child.stdout.on('data', (chunk) => (text += chunk))
    child.stderr.on('data', (chunk) => (text += chunk))
    const [status] = (await once(child, 'close')) as [number | null]
    return { status, text }
  }
  return { cwd, server, env, sh }
}

/** Why a test that needs these programs cannot run; false where it can. */
export function missing(...programs: string[]): string | false {
  for (const program of programs) {
    try {
      execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' })
    } catch {
      return `${program} is not installed: NOT TESTED`
    }
  }
  return false
}
