import { Client, type Dispatcher } from 'undici'

/** How connections to one server are made. */
export interface ConnectionSettings {
  /** Scheme, host and port. */
  origin: string
  /** Idle connections are closed after this many milliseconds of wall time. */
  keepAlive: number
  /** PEM text of further certificate authorities. */
  ca: string | undefined
}

/** TCP keep-alive probes begin after this silence: NATs drop flows after a few minutes. */
const TCP_KEEP_ALIVE_DELAY = 30_000

/**
 * One connection at most, for one request at a time: a slot of the concurrency limit owns it. A
 * `Client` of undici per slot is faster than a `Pool`, whose search for a free connection grows with
 * their number. undici's own limits of 300 s are off: the budgets are ours (deadlines.ts).
 */
export class Connection {
  #settings: ConnectionSettings
  #client: Client | undefined

  constructor(settings: ConnectionSettings) {
    this.#settings = settings
  }

  dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client ??= this.#open()
    this.#client.dispatch(options, handler)
  }

  /** Ends whatever is under way, with `error`; the next request opens a new connection. */
  abort(error: Error): void {
    const client = this.#client
    this.#client = undefined
    void client?.destroy(error)
  }

  close(): void {
    const client = this.#client
    this.#client = undefined
    void client?.destroy()
  }

  #open(): Client {
    const { origin, keepAlive, ca } = this.#settings
    return new Client(origin, {
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: keepAlive,
      keepAliveMaxTimeout: keepAlive,
      pipelining: 1,
      connect: {
        timeout: 0,
        keepAlive: true,
        keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY,
        ...(ca === undefined ? {} : { ca }),
      },
    })
  }
}
