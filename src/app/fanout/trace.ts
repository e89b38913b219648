import { closeSync, openSync } from 'node:fs'
import type { Context } from '../../cli/command.ts'
import type { Clock } from '../../core/clock.ts'
import { ClosedPipe, EXIT, ioError, ToolError } from '../../core/tool-error.ts'
import { LineWriter } from '../../files/line-writer.ts'
import { openPipe } from '../../files/pipe-output.ts'
import type { Accounting } from './accounting.ts'
import type { PooledEndpoint } from './endpoint-pool.ts'
import type { Engine } from './engine.ts'
import type { FanoutOptions } from './options.ts'

const SECOND = 1000

/** What a trace looks at. */
export interface TraceParts {
  clock: Clock
  accounting: Accounting
  engine: Engine
  /** What holds the run up, if anything. */
  waiting: () => string | undefined
}

/** One line a second about the state of a run (--trace). */
export class Trace {
  /** 2 where the trace could not be written: the run goes on without it. */
  exitCode: number = EXIT.ok
  #context: Context
  #options: FanoutOptions
  #parts: TraceParts
  #fd: number
  #writer: LineWriter
  #startedAt: number
  #last: { at: number; done: number; tokens: number }
  #stop: () => void
  #ended = false

  constructor(
    context: Context,
    options: FanoutOptions,
    parts: TraceParts,
    { fd, file }: { fd: number; file: string },
  ) {
    const { clock } = parts
    this.#context = context
    this.#options = options
    this.#parts = parts
    this.#fd = fd
    // A full disk is not waited out: answers are worth that, a trace is not.
    const writing = { clock, regular: false, syncEvery: 0, onBlocked: () => {} }
    this.#writer = new LineWriter(this.#fd, file, writing)
    this.#startedAt = clock.now()
    this.#last = { at: this.#startedAt, done: 0, tokens: 0 }
    this.#stop = clock.every(SECOND, () => this.#write())
  }

  /** Writes the last state and ends the file. */
  async close(): Promise<void> {
    this.#stop()
    this.#write()
    await this.#writer.close()
    closeSync(this.#fd)
  }

  #write(): void {
    if (this.#ended) return
    this.#writer.write(`${JSON.stringify(this.#state())}\n`).catch((error: unknown) => {
      if (this.#ended) return
      this.#ended = true
      if (error instanceof ClosedPipe) return
      this.exitCode = EXIT.trouble
      const { message, code, place } =
        error instanceof ToolError ? error : new ToolError('io', String(error))
      this.#context.report.error(`${message}: the run goes on without its trace`, code, place)
    })
  }

  #state(): object {
    const { clock, accounting, engine, waiting } = this.#parts
    const { answered, failed, skipped, retries } = accounting
    const { endpoints } = engine.pool
    const { delivered, firstToken, firstTokenFloor } = engine.streams
    const at = clock.now()
    const done = answered + failed
    // Without streams, what answers bring when they are whole.
    const tokens = Math.max(delivered, accounting.completionTokens)
    const seconds = Math.max(0.001, (at - this.#last.at) / 1000)
    const rate = (now: number, before: number): number => round((now - before) / seconds)
    const state = {
      time: new Date(clock.date()).toISOString(),
      elapsed_s: round((at - this.#startedAt) / 1000),
      done: done + skipped,
      failed,
      in_flight: engine.pool.inUse,
      ...this.#pace(engine),
      waiting_for: waiting(),
      first_token_ms: whole(firstToken),
      first_token_floor_ms: whole(firstTokenFloor),
      tokens_per_second: rate(tokens, this.#last.tokens),
      requests_per_second: rate(done, this.#last.done),
      retries,
      ...(endpoints.length > 1 && {
        endpoints: endpoints.map((endpoint, index) => this.#endpoint(endpoint, index)),
      }),
    }
    this.#last = { at, done, tokens }
    return state
  }

  #pace({ pacers }: Engine): object {
    const { concurrency } = this.#options
    if (concurrency !== 'auto') return { limit: concurrency, reason: 'fixed' }
    const waiting = pacers.map((pacer) => pacer.waitingThere)
    return {
      limit: pacers.reduce((sum, { controller }) => sum + controller.limit, 0),
      reason: pacers.map(({ controller }) => controller.reason).join(' | '),
      waiting_at_server: waiting.includes(undefined)
        ? undefined
        : waiting.reduce<number>((sum, count) => sum + count!, 0),
    }
  }

  #endpoint({ server, inUse, firstTokens, counts }: PooledEndpoint, index: number): object {
    const pacer = this.#parts.engine.pacers[index]
    return {
      url: server.endpoint.url,
      in_flight: inUse,
      limit: pacer?.controller.limit,
      reason: pacer?.controller.reason,
      waiting_at_server: pacer?.waitingThere,
      first_token_ms: whole(firstTokens.present),
      first_token_floor_ms: whole(firstTokens.floor),
      answered: counts.answered,
      failed: counts.failed,
    }
  }
}

/**
 * Begins the trace that the options ask for.
 *
 * @throws ToolError where its file cannot be written, Interrupted
 */
export async function openTrace(
  context: Context,
  options: FanoutOptions,
  parts: TraceParts,
): Promise<Trace | undefined> {
  const { trace: file, overwrite } = options
  if (file === undefined) return undefined
  try {
    const fd =
      (await openPipe(file, context.interrupt.reading)) ?? openSync(file, overwrite ? 'w' : 'a')
    return new Trace(context, options, parts, { fd, file })
  } catch (error) {
    throw ioError(error, file, 'write')
  }
}

function whole(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Math.round(value)
}

function round(value: number): number {
  return Math.round(value * 10) / 10
}
