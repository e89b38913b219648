import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ExpectedAnswer, Usage } from '../../src/simulator/answer.ts'
import type { StatsSnapshot } from '../../src/simulator/ledger.ts'
import type { SimulatorOptions } from '../../src/simulator/options.ts'
import { type Simulator, startSimulator } from '../../src/simulator/server.ts'

/**
 * Quick, with answers of some dozens of tokens. Connections stay open: at this speed the server would
 * close idle ones after 25 ms, and fetch, which knows of 4 s, would lose requests to that.
 */
export const QUICK: SimulatorOptions = {
  speed: 200,
  meanTokens: 40,
  maxTokens: 400,
  keepAliveMs: 0,
}

export async function withServer(
  options: SimulatorOptions,
  run: (simulator: Simulator) => Promise<void>,
): Promise<void> {
  const simulator = await startSimulator(options)
  try {
    await run(simulator)
  } finally {
    await simulator.close()
  }
}

export function chatBody(content: string, more: object = {}): Record<string, unknown> {
  return { messages: [{ role: 'user', content }], ...more }
}

export const STREAM = { stream: true, stream_options: { include_usage: true } }

export function post(
  { url }: Simulator,
  path: string,
  body: unknown,
  headers: Record<string, string> = {},
): Promise<Response> {
  return fetch(`${url}/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
}

/** The parts of chunks and bodies that tests look at. */
interface Choice {
  readonly finish_reason: string | null
  readonly text?: string
  readonly delta?: { content?: string; reasoning?: string; reasoning_content?: string }
}

export interface Chunk {
  readonly id: string
  readonly object: string
  readonly choices: readonly Choice[]
  readonly usage?: Usage
  readonly error?: { message: string; code: number }
}

/** The data of each event; fails on anything that is no event. */
export function eventsOf(text: string): string[] {
  const parts = text.split('\n\n')
  assert.equal(parts.pop(), '', 'the stream ends within an event')
  return parts
    .filter((part) => !part.startsWith(':'))
    .map((part) => {
      assert.match(part, /^data: [^\n]*$/)
      return part.slice('data: '.length)
    })
}

export function chunksOf(text: string): Chunk[] {
  const events = eventsOf(text).filter((data) => data !== '[DONE]')
  return events.map((data) => JSON.parse(data) as Chunk)
}

/** What a client makes of a stream. */
export function joinStream(text: string): {
  reasoning: string
  content: string
  finish_reason: string | null
  usage: Usage | undefined
} {
  const chunks = chunksOf(text)
  const choices = chunks.flatMap((chunk) => chunk.choices)
  return {
    reasoning: choices.map(({ delta }) => delta?.reasoning ?? '').join(''),
    content: choices.map(({ delta, text: own }) => delta?.content ?? own ?? '').join(''),
    finish_reason: choices.find((choice) => choice.finish_reason !== null)?.finish_reason ?? null,
    usage: chunks.find((chunk) => chunk.usage)?.usage,
  }
}

/** What a client makes of a chat completion that was not streamed. */
export function readWhole(body: unknown): ExpectedAnswer {
  const { choices, usage } = body as {
    choices: [{ message: { content: string; reasoning: string | null }; finish_reason: string }]
    usage: Usage
  }
  const [{ message, finish_reason }] = choices
  const { content, reasoning } = message
  return {
    reasoning: reasoning ?? '',
    content,
    finish_reason: finish_reason as ExpectedAnswer['finish_reason'],
    usage,
  }
}

/** A POST over a bare socket, for looking at the wire itself. */
export class RawPost {
  readonly socket: Socket
  /** Bytes that came, as Latin-1. */
  received = ''
  /** How it ended: `end` for FIN, or the code of the error. */
  readonly ended: Promise<string>

  constructor({ port }: Simulator, body: unknown, path = '/v1/chat/completions') {
    const text = JSON.stringify(body)
    this.socket = connect(port, '127.0.0.1')
    this.socket.write(
      `POST ${path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n` +
        `Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
    )
    this.socket.on('data', (data) => {
      this.received += data.toString('latin1')
    })
    this.ended = new Promise((resolve) => {
      this.socket.on('error', (error: NodeJS.ErrnoException) => resolve(String(error.code)))
      this.socket.on('end', () => resolve('end'))
    })
  }

  get head(): string {
    return this.received.slice(0, this.received.indexOf('\r\n\r\n'))
  }

  get body(): string {
    return this.received.slice(this.received.indexOf('\r\n\r\n') + 4)
  }

  async leave(): Promise<void> {
    this.socket.destroy()
    if (!this.socket.closed) await once(this.socket, 'close')
  }
}

/** Long enough for any machine; a test that gets here hangs. */
const HANGS_AFTER_MS = 20_000

/** Waits for a condition to come true, however long that takes on a busy machine. */
export async function until(condition: () => boolean | Promise<boolean>): Promise<void> {
  const startedAt = performance.now()
  while (!(await condition())) {
    assert.ok(performance.now() - startedAt < HANGS_AFTER_MS, `never: ${condition}`)
    await sleep(2)
  }
}

export function assertBalanced({ tokens, requests }: StatsSnapshot): void {
  assert.equal(tokens.generated, tokens.delivered + tokens.wasted + tokens.in_flight)
  const { total, open, completed, aborted, faulted, refused, lost } = requests
  assert.equal(total, open + completed + aborted + faulted + refused + lost)
}
