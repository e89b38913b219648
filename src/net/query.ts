import type { IncomingHttpHeaders } from 'node:http'
import type { Dispatcher } from 'undici'
import { type Failure, networkFailure } from '../core/failure.ts'
import { Connection, type ConnectionSettings } from './connection.ts'

/** The reply to a small GET. */
export type QueryReply =
  | { status: number; headers: IncomingHttpHeaders; body: string }
  | { failure: Failure }

/**
 * The limit is counted in so many beats: a process that was stopped or blocked misses all of them
 * but one, and finds the reply when it goes on.
 */
const BEATS = 10

/** More than this of a reply is not read. */
const LONGEST_BODY = 4 * 1024 * 1024

/**
 * Asks a server with GET: its models, its health.
 *
 * @param timeout milliseconds of wall time for the whole reply
 * @param signal gives the question up
 */
export function query(
  settings: ConnectionSettings,
  path: string,
  headers: string[],
  timeout: number,
  signal?: AbortSignal,
): Promise<QueryReply> {
  const connection = new Connection(settings)
  return new Promise((resolve) => {
    const settle = (reply: QueryReply): void => {
      clearInterval(timer)
      signal?.removeEventListener('abort', giveUp)
      resolve(reply)
      connection.close()
    }
    const giveUp = (): void => {
      settle({ failure: { code: 'aborted', message: 'the run was ended', retryable: false } })
    }
    let beats = 0
    const timer = setInterval(() => {
      if (++beats < BEATS) return
      const message = `no answer within ${timeout / 1000} s`
      settle({ failure: { code: 'timeout', message, retryable: true } })
    }, timeout / BEATS)
    const chunks: Buffer[] = []
    let length = 0
    let status = 0
    let replyHeaders: IncomingHttpHeaders = {}
    const handler: Dispatcher.DispatchHandler = {
      onRequestStart() {},
      onResponseStart(_controller, code, itsHeaders) {
        status = code
        replyHeaders = itsHeaders
      },
      onResponseData(controller, chunk) {
        length += chunk.length
        if (length > LONGEST_BODY) controller.abort(new Error('the reply is too long'))
        chunks.push(chunk)
      },
      onResponseEnd: () =>
        settle({ status, headers: replyHeaders, body: Buffer.concat(chunks).toString() }),
      onResponseError: (_controller, error) => settle({ failure: networkFailure(error) }),
    }
    if (signal?.aborted) return giveUp()
    signal?.addEventListener('abort', giveUp)
    connection.dispatch({ method: 'GET', path, headers }, handler)
  })
}
