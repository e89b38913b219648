import type { Socket } from 'node:net'
import type { Ledger } from './ledger.ts'
import { resetSocket } from './reset-socket.ts'

/**
 * The connections to the server: counted, closed when idle, reset together.
 *
 * Node's own keep-alive timeout adds a second of wall time (a constant in Node 20) and announces
 * itself in a `Keep-Alive` header; uvicorn does neither, and with a fast clock a second is an age.
 */
export class Connections {
  readonly #ledger: Ledger
  readonly #idleMs: number
  /** Requests in progress on each; more than one where they are pipelined. */
  readonly #requests = new Map<Socket, number>()

  /** @param idleMs wall time after which an idle connection is closed; 0 for never */
  constructor(ledger: Ledger, idleMs: number) {
    this.#ledger = ledger
    this.#idleMs = idleMs
  }

  add(socket: Socket): void {
    this.#requests.set(socket, 0)
    this.#ledger.connected()
    socket.once('close', () => {
      this.#requests.delete(socket)
      this.#ledger.disconnected()
    })
  }

  requestBegins(socket: Socket): void {
    const open = this.#requests.get(socket)
    if (open === undefined) return
    this.#requests.set(socket, open + 1)
    socket.setTimeout(0)
  }

  /** Not called where the connection ended first. */
  requestEnds(socket: Socket): void {
    const open = this.#requests.get(socket)
    if (open === undefined) return
    this.#requests.set(socket, open - 1)
    // The HTTP server destroys a socket that times out.
    if (open === 1) socket.setTimeout(this.#idleMs)
  }

  resetAll(): void {
    for (const socket of this.#requests.keys()) resetSocket(socket)
  }
}
