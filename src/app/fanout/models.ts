import type { Clock } from '../../core/clock.ts'
import { RETRY_DEFAULTS, retryDelay } from '../../core/retry-policy.ts'
import { Interrupted, type ToolError } from '../../core/tool-error.ts'
import type { Busy, Server } from './server.ts'
import type { Stop } from './stop.ts'

export interface ModelsOptions {
  clock: Clock
  random: () => number
  /** Milliseconds after which a server that stays busy ends the run. */
  maxOutage: number
  stop: Stop
  /** Told once, when servers are to be asked again. */
  onBusy: (error: ToolError) => void
}

type Models = PromiseSettledResult<string[]>

/**
 * The models that each server lists. Where none does, and one of them says that it is busy, all are
 * asked again, with the pauses of a request that is tried again.
 *
 * @throws Interrupted where the run ends meanwhile
 */
export async function askModels(
  servers: readonly Server[],
  { clock, random, maxOutage, stop, onBusy }: ModelsOptions,
): Promise<Models[]> {
  let began: number | undefined
  for (let attempt = 1; ; attempt++) {
    const replies = await Promise.allSettled(servers.map((server) => server.models(clock.date())))
    if (stop.requested) throw new Interrupted()
    const busy = replies.map(busyOf).find((reply) => reply !== undefined)
    const lists = replies.map(listOf)
    // An outage begins with its first sign, however long that took to come.
    began ??= clock.now()
    const left = maxOutage - (clock.now() - began)
    const reached = lists.some(({ status }) => status === 'fulfilled')
    if (busy === undefined || reached || left <= 0) return lists
    if (attempt === 1) onBusy(busy.error)
    const retry = { ...RETRY_DEFAULTS, retries: attempt }
    await pause(Math.min(left, retryDelay(retry, attempt, busy.retryAfter, random)), clock, stop)
  }
}

function busyOf(reply: PromiseSettledResult<string[] | Busy>): Busy | undefined {
  return reply.status === 'rejected' || Array.isArray(reply.value) ? undefined : reply.value
}

function listOf(reply: PromiseSettledResult<string[] | Busy>): Models {
  if (reply.status === 'rejected') return reply
  const { value } = reply
  return Array.isArray(value)
    ? { status: 'fulfilled', value }
    : { status: 'rejected', reason: value.error }
}

/** Waits, or until the run is to end. */
function pause(ms: number, clock: Clock, { reading, requested }: Stop): Promise<void> {
  if (requested) return Promise.resolve()
  return new Promise((resolve) => {
    const done = (): void => {
      cancel()
      reading.removeEventListener('abort', done)
      resolve()
    }
    const cancel = clock.after(ms, done)
    reading.addEventListener('abort', done)
  })
}
