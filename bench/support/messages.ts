/** What the servers of the benchmarks tell the process that has started them. */
export type ServerMessage =
  | { kind: 'listening'; port: number }
  /** All the streams that were waited for are open; milliseconds since 1970. */
  | { kind: 'started'; at: number }
  | { kind: 'report'; requests: number; seconds: number }

/** Tells the parent process something; without one (started by hand) it is printed. */
export function tellParent(message: ServerMessage): void {
  if (process.send) process.send(message)
  else process.stdout.write(`${JSON.stringify(message)}\n`)
}
