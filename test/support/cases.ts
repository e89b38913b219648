import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { newFolder } from './run.ts'

const CASES = fileURLToPath(new URL('../cases/', import.meta.url))

export interface Problem {
  /** 0: the file as a whole; `last`: its last line. */
  line: number | 'last'
  code: string
}

/** A folder of test/cases; its README tells what the members mean. */
export interface Case {
  name: string
  symptom: string
  input: string
  generator?: string
  validate: { exit: number; problems: Problem[]; warnings?: Problem[] }
  repair?: {
    exit: number
    stdout?: string
    stdout_is?: string
    refused?: boolean
    removed_hex?: string[]
  }
  dedupe?: {
    args: string[]
    stdin: string
    stdout?: string
    stdout_tail?: number
    exit: number
  }
}

export function loadCases(): Case[] {
  return readdirSync(CASES)
    .filter((name) => existsSync(join(CASES, name, 'case.json')))
    .map((name) => JSON.parse(readFileSync(join(CASES, name, 'case.json'), 'utf8')) as Case)
}

/** A copy of a case's folder, with what its generator makes; undefined where that needs a missing tool. */
export function prepare(spec: Case): string | undefined {
  const folder = newFolder()
  cpSync(join(CASES, spec.name), folder, { recursive: true })
  if (spec.generator === undefined) return folder
  try {
    execFileSync('sh', ['-e', spec.generator], { cwd: folder, stdio: 'ignore' })
  } catch {
    return undefined
  }
  return statSync(join(folder, spec.input)).size > 0 ? folder : undefined
}

/** The files of a case that are the operands, in order. */
export function inputs(spec: Case, folder: string): string[] {
  const names = [spec.input]
  if (existsSync(join(folder, 'input2.jsonl'))) names.push('input2.jsonl')
  return names
}

/** What repair-truncated must write. */
export function repaired(spec: Case, folder: string): Buffer {
  const { stdout, stdout_is } = spec.repair!
  if (stdout !== undefined) return readFileSync(join(folder, stdout))
  if (stdout_is === undefined) return Buffer.alloc(0)
  const input = decompressed(join(folder, spec.input))
  return input.subarray(0, input.lastIndexOf(0x0a) + 1)
}

/** What the usual tool gets out of a file, as far as it comes. */
function decompressed(file: string): Buffer {
  if (!file.endsWith('.zst')) return readFileSync(file)
  const script = 'zstd -dc "$0" 2>/dev/null || true'
  return execFileSync('sh', ['-c', script, file], { maxBuffer: 2 ** 30 })
}

/** Problems and warnings as validate-jsonl wrote them: `NAME:LINE:COLUMN: message [code]`. */
export function messages(stderr: string): { problems: Problem[]; warnings: Problem[] } {
  const problems: Problem[] = []
  const warnings: Problem[] = []
  for (const line of stderr.split('\n')) {
    const [, number, warning, code] =
      /^validate-jsonl: (?:[^:]+?(?::(\d+)(?::\d+)?)?: )(warning: )?.*\[([a-z0-9-]+)\]$/.exec(
        line,
      ) ?? []
    if (code === undefined) continue
    const found = warning === undefined ? problems : warnings
    found.push({ line: number === undefined ? 0 : Number(number), code })
  }
  return { problems, warnings }
}

/** The pieces of a removed file, in hex. */
export function removedHex(file: string): string[] {
  if (!existsSync(file)) return []
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const { text, base64 } = JSON.parse(line) as { text?: string; base64?: string }
      const bytes = text === undefined ? Buffer.from(base64!, 'base64') : Buffer.from(text)
      return bytes.toString('hex')
    })
}
