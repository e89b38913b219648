import type { ServerResponse } from 'node:http'
import type { ApiError } from './api-error.ts'

/** Content types. */
export const JSON_TYPE = 'application/json'
export const EVENTS = 'text/event-stream; charset=utf-8'

type Headers = Readonly<Record<string, string | number>>

function startReply(response: ServerResponse, status: number, headers: Headers): void {
  response.writeHead(status, { Server: 'uvicorn', ...headers })
}

export function startJson(response: ServerResponse, status: number, length: number): void {
  startReply(response, status, { 'Content-Type': JSON_TYPE, 'Content-Length': length })
}

export function startEvents(response: ServerResponse): void {
  startReply(response, 200, { 'Content-Type': EVENTS })
  response.flushHeaders()
}

/** A whole reply with a text body. */
export function reply(
  response: ServerResponse,
  status: number,
  type: string,
  text: string | Buffer,
  headers: Readonly<Record<string, string>> = {},
): void {
  const body = typeof text === 'string' ? Buffer.from(text) : text
  const length = { 'Content-Type': type, 'Content-Length': body.length }
  startReply(response, status, { ...length, ...headers })
  response.end(body)
}

export function replyJson(response: ServerResponse, value: unknown): void {
  reply(response, 200, JSON_TYPE, JSON.stringify(value))
}

export function replyError(response: ServerResponse, error: ApiError): void {
  reply(response, error.status, JSON_TYPE, error.body, error.headers)
}
