import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Connections } from './connections.ts'
import type { StatsSnapshot } from './ledger.ts'
import { type GivenOptions, resolveOptions } from './options.ts'
import { type OutageKind, runOutages } from './outages.ts'
import { route } from './routes.ts'
import { World } from './world.ts'

/** A running server. */
export interface Simulator {
  readonly port: number
  /** Without a path: `http://127.0.0.1:8000`; the API is under `/v1`. */
  readonly url: string
  /** The same as `GET /stats`. */
  stats(): StatsSnapshot
  /** Resets what is open and stops listening. */
  close(): Promise<void>
}

/** As many connections may wait to be accepted; the kernel's own limit is usually 4,096. */
const BACKLOG = 4_096

/** Pause before the port is asked for again that somebody took during an outage. */
const RELISTEN_MS = 100

/**
 * Starts an OpenAI-compatible server that behaves like a busy vLLM.
 * @throws OptionError, FaultSpecError, OutageSpecError for options that make no sense
 * @throws the error of `listen`, such as EADDRINUSE
 */
export async function startSimulator(options: GivenOptions = {}): Promise<Simulator> {
  const world = new World(resolveOptions(options))
  const { host } = world.settings
  const idleMs = Math.ceil(world.clock.toWall(world.settings.keepAliveMs))
  const connections = new Connections(world.ledger, idleMs)
  const server = createHttpServer(world, connections)
  await listen(server, world.settings.port, host)
  const { port } = server.address() as AddressInfo
  const lifecycle = new Lifecycle(world, server, connections, port)
  const stopOutages = runOutages(
    world.settings.outages,
    world.clock,
    (kind) => lifecycle.beginOutage(kind),
    (kind) => lifecycle.endOutage(kind),
  )
  return {
    port,
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}`,
    stats: () => world.snapshot(),
    close: async () => {
      stopOutages()
      await lifecycle.close()
    },
  }
}

function createHttpServer(world: World, connections: Connections): Server {
  const server = createServer({ requestTimeout: 0, keepAliveTimeout: 0 }, (request, response) => {
    const { socket } = request
    connections.requestBegins(socket)
    response.once('finish', () => connections.requestEnds(socket))
    route(world, request, response)
  })
  server.on('connection', (socket) => connections.add(socket))
  return server
}

async function listen(server: Server, port: number, host: string): Promise<void> {
  server.listen({ port, host, backlog: BACKLOG })
  await once(server, 'listening')
}

/** Takes the server down and up again. */
class Lifecycle {
  readonly #world: World
  readonly #server: Server
  readonly #connections: Connections
  readonly #port: number
  #closed = false

  constructor(world: World, server: Server, connections: Connections, port: number) {
    this.#world = world
    this.#server = server
    this.#connections = connections
    this.#port = port
  }

  /** Counters go on through an outage, unlike those of a killed vLLM, so that a run adds up. */
  async beginOutage(kind: OutageKind): Promise<void> {
    this.#world.ledger.outages++
    if (kind === 'sick') this.#world.sick = true
    else await this.#goDown()
  }

  async endOutage(kind: OutageKind): Promise<void> {
    if (kind === 'sick') {
      this.#world.sick = false
      return
    }
    while (!this.#closed) {
      try {
        await listen(this.#server, this.#port, this.#world.settings.host)
        if (this.#closed) this.#server.close()
        else this.#world.down = false
        return
      } catch {
        await sleep(RELISTEN_MS)
      }
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#goDown()
    this.#world.engine.stop()
  }

  async #goDown(): Promise<void> {
    this.#world.down = true
    const closed = this.#server.listening ? once(this.#server, 'close') : undefined
    if (closed) this.#server.close()
    this.#connections.resetAll()
    await closed
  }
}
