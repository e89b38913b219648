import { rootCertificates } from 'node:tls'
import { Client, type Dispatcher, EnvHttpProxyAgent } from 'undici'
import { usageError } from '../core/tool-error.ts'

/** How connections to one server are made. */
export interface ConnectionSettings {
  /** Scheme, host and port. */
  origin: string
  /** Idle connections are closed after this many milliseconds of wall time. */
  keepAlive: number
  /** PEM text of certificate authorities that are trusted beside the usual ones. */
  ca: string | undefined
  /** Proxies by the usual variables; undefined where none is set. */
  proxy: ProxySettings | undefined
}

export interface ProxySettings {
  httpProxy: string
  httpsProxy: string
  noProxy: string
}

/** TCP keep-alive probes begin after this silence: NATs drop flows after a few minutes. */
const TCP_KEEP_ALIVE_DELAY = 30_000

/**
 * One connection at most, for one request at a time: a slot of the concurrency limit owns it. A
 * `Client` of undici per slot is faster than a `Pool`, whose search for a free connection grows with
 * their number. undici's own limits of 300 s are off: the budgets are ours (deadlines.ts). undici
 * follows no redirects, so a key never goes to another host.
 */
export class Connection {
  /** A reply has come over it: it may have been closed since, while it was idle. */
  used = false
  #settings: ConnectionSettings
  #client: Dispatcher | undefined
  #trail: object | undefined
  #onTrailEnd: (() => void) | undefined

  constructor(settings: ConnectionSettings) {
    this.#settings = settings
  }

  /** @param request is given its origin, which proxies need */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#client ??= open(this.#settings)
    request.origin = this.#settings.origin
    this.#client.dispatch(request, handler)
  }

  /** A reply was taken before its end: another request would wait for that end. */
  get trails(): boolean {
    return this.#trail !== undefined
  }

  /** Calls back once, when the reply that trails now has ended or was given up. */
  afterTrail(call: () => void): void {
    this.#onTrailEnd = call
  }

  /** @param reply its answer is whole, but it has not ended */
  trail(reply: object): void {
    this.#trail = reply
  }

  /** @param reply has ended; of any other than the one that trails nothing is known here */
  trailEnded(reply: object): void {
    if (this.#trail !== reply) return
    this.#trail = undefined
    const call = this.#onTrailEnd
    this.#onTrailEnd = undefined
    call?.()
  }

  /** Ends whatever is under way, with `error`; the next request opens a new connection. */
  abort(error: Error): void {
    const client = this.#client
    this.#client = undefined
    this.used = false
    void client?.destroy(error)
  }

  /** The next request opens a new connection. */
  close(): void {
    this.used = false
    const client = this.#client
    this.#client = undefined
    void client?.destroy()
    if (this.#trail !== undefined) this.trailEnded(this.#trail)
  }
}

function open({ origin, keepAlive, ca, proxy }: ConnectionSettings): Dispatcher {
  const options = {
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: keepAlive,
    keepAliveMaxTimeout: keepAlive,
    pipelining: 1,
    connect: {
      timeout: 0,
      keepAlive: true,
      keepAliveInitialDelay: TCP_KEEP_ALIVE_DELAY,
      ...(ca === undefined ? {} : { ca: [...rootCertificates, ca] }),
    },
  }
  return proxy === undefined
    ? new Client(origin, options)
    : // Plain http goes to a proxy as curl sends it, without CONNECT, which many allow for 443 only.
      new EnvHttpProxyAgent({ ...options, ...proxy, connections: 1, proxyTunnel: false })
}

/** The proxies that the environment names, lower case first, as curl reads them. */
export function proxyOf(
  env: Readonly<Record<string, string | undefined>>,
): ProxySettings | undefined {
  const httpProxy = env.http_proxy || env.HTTP_PROXY || ''
  const httpsProxy = env.https_proxy || env.HTTPS_PROXY || ''
  if (httpProxy === '' && httpsProxy === '') return undefined
  const noProxy = env.no_proxy || env.NO_PROXY || ''
  return {
    httpProxy: proxyUrl(httpProxy, 'http_proxy'),
    httpsProxy: proxyUrl(httpsProxy, 'https_proxy'),
    noProxy,
  }
}

/** The URL of a proxy, which as for curl may do without a scheme. */
function proxyUrl(proxy: string, variable: string): string {
  if (proxy === '') return ''
  const url = /^[a-z][a-z0-9+.-]*:\/\//i.test(proxy) ? proxy : `http://${proxy}`
  if (/^https?:/i.test(url) && URL.canParse(url)) return url
  throw usageError(`$${variable} names no http or https proxy (such as http://proxy:3128)`)
}
