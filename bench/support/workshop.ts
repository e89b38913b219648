import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Quiet } from './quiet.ts'
import { type Finished, type ProcessOptions, runProcess } from './run-process.ts'
import { SampleFiles } from './sample-files.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export interface WorkshopOptions {
  /** Megabytes of the file of large records; all other sizes are in proportion to 500. */
  size: number
  /** Folder with the compiled binaries in bin/. */
  dist: string
  /** Seconds that a run waits for a moment in which nothing else runs. */
  patience: number
  signal: AbortSignal
}

/** Sizes in the options are for this many megabytes of large records. */
const FULL_SIZE = 500

/** What benchmarks work with: a folder of their own, files in it, our binaries, processes. */
export class Workshop {
  readonly folder: string
  readonly files: SampleFiles
  readonly signal: AbortSignal
  readonly quiet: Quiet
  /** Megabytes of the file of large records. */
  readonly size: number
  #dist: string

  constructor({ size, dist, patience, signal }: WorkshopOptions) {
    this.folder = mkdtempSync(join(tmpdir(), 'completion-pipes-bench-'))
    this.files = new SampleFiles(this.folder)
    this.signal = signal
    this.quiet = new Quiet(patience * 1000)
    this.size = size
    this.#dist = dist
  }

  /** A figure that is `full` in a full run. */
  scaled(full: number): number {
    return Math.round((full * this.size) / FULL_SIZE)
  }

  path(name: string): string {
    return join(this.folder, name)
  }

  /** The command line of one of our binaries. */
  binary(name: string, ...args: string[]): [string, ...string[]] {
    return [process.execPath, join(this.#dist, 'bin', `${name}.js`), ...args]
  }

  /** Runs a command in a moment in which nothing else runs, if one comes. */
  async run(
    command: readonly [string, ...string[]],
    options: Omit<ProcessOptions, 'signal'> = {},
  ): Promise<Finished> {
    await this.quiet.moment()
    return runProcess(command, { ...options, signal: this.signal })
  }

  /** The wall time of a command in seconds. */
  async seconds(
    command: readonly [string, ...string[]],
    options: Omit<ProcessOptions, 'signal'> = {},
  ): Promise<number> {
    return (await this.run(command, options)).seconds
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** The command line of a TypeScript program beside the benchmarks. */
export function helper(name: string, ...args: string[]): [string, ...string[]] {
  const tsx = fileURLToPath(import.meta.resolve('tsx'))
  return [process.execPath, '--import', `file://${tsx}`, join(ROOT, 'bench', name), ...args]
}
