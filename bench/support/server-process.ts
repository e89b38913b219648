import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { ServerMessage } from './messages.ts'

/** A server in a process of its own, so that it has a core of its own. */
export class ServerProcess {
  readonly url: string
  #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.url = `http://127.0.0.1:${port}/v1`
  }

  /** @param name file of the server in the folder of the benchmarks */
  static async start(name: string, ...args: string[]): Promise<ServerProcess> {
    const path = fileURLToPath(new URL(`../${name}`, import.meta.url))
    const execArgv = ['--import', import.meta.resolve('tsx')]
    const child = fork(path, args, { execArgv })
    const { port } = await message(child, 'listening')
    return new ServerProcess(child, port)
  }

  /** The next message of a kind. */
  next<Kind extends ServerMessage['kind']>(
    kind: Kind,
  ): Promise<Extract<ServerMessage, { kind: Kind }>> {
    return message(this.#child, kind)
  }

  /** What it has answered since it was last asked. */
  async report(): Promise<{ requests: number; seconds: number }> {
    const report = this.next('report')
    this.#child.send('report')
    return report
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return
    const exit = once(this.#child, 'exit')
    this.#child.kill()
    await exit
  }
}

function message<Kind extends ServerMessage['kind']>(
  child: ChildProcess,
  kind: Kind,
): Promise<Extract<ServerMessage, { kind: Kind }>> {
  return new Promise((resolve, reject) => {
    const failed = (): void => reject(new Error('the server of the benchmark has ended'))
    const received = (value: unknown): void => {
      if ((value as ServerMessage).kind !== kind) return
      child.off('message', received)
      child.off('exit', failed)
      resolve(value as Extract<ServerMessage, { kind: Kind }>)
    }
    child.on('message', received)
    child.once('exit', failed)
  })
}
