import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { ProcessWatch } from './process-watch.ts'

/** A simulate-server that is watched while it serves. */
export class SimulatorProcess {
  readonly url: string
  #child: ChildProcess
  #watch: ProcessWatch

  private constructor(child: ChildProcess, pid: number, url: string) {
    this.url = url
    this.#child = child
    this.#watch = new ProcessWatch(pid)
  }

  /** @param command with `--port 0`; the server prints its URL as its first line */
  static async start([program, ...args]: readonly [
    string,
    ...string[],
  ]): Promise<SimulatorProcess> {
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string]
    if (child.pid === undefined) throw new Error('simulate-server did not start')
    return new SimulatorProcess(child, child.pid, line)
  }

  /** In bytes, until now. */
  get peakMemory(): number {
    return this.#watch.sample()?.peakMemory ?? 0
  }

  /** CPU time until now. */
  get cpuSeconds(): number {
    return this.#watch.sample()?.cpuSeconds ?? 0
  }

  async stop(): Promise<void> {
    this.#watch.stop()
    if (this.#child.exitCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.kill()
    await exit
  }
}
