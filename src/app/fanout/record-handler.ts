import type { Context } from '../../cli/command.ts'
import { printable } from '../../cli/reporter.ts'
import type { Clock } from '../../core/clock.ts'
import type { Failure } from '../../core/failure.ts'
import { type FailedRecord, failureLine } from '../../core/output-record.ts'
import type { InputRecord } from '../../core/record.ts'
import { RecordError } from '../../core/record-error.ts'
import { type Shard, shardOfText } from '../../core/shard.ts'
import { ClosedPipe, EXIT, ToolError } from '../../core/tool-error.ts'
import { type Accounting, increment } from './accounting.ts'
import type { Completer, Completion } from './completer.ts'
import type { Engine } from './engine.ts'
import type { Entry } from './entries.ts'
import { Halt } from './halt.ts'
import type { FanoutOptions } from './options.ts'
import { OrderedOutput } from './ordered-output.ts'
import type { Outputs } from './outputs.ts'
import type { Stop } from './stop.ts'

export interface HandlerParts {
  clock: Clock
  accounting: Accounting
  stop: Stop
  outputs: Outputs
  engine: Engine
  shard: Shard | undefined
}

type Usable = Extract<Entry, { kind: 'record' }>
type Unusable = Extract<Entry, { kind: 'unusable' }>

/** Takes each line of input to its end: answered, failed, skipped, or left where the run stops. */
export class RecordHandler {
  #context: Context
  #options: FanoutOptions
  #parts: HandlerParts
  #ordered: OrderedOutput | undefined
  #halt: Halt
  #index = 0
  #open = 0
  #blocked: string | undefined
  #idle: (() => void) | undefined
  /** Undefined until the first record has come. */
  #completer: Completer | undefined

  constructor(context: Context, options: FanoutOptions, parts: HandlerParts) {
    const { stop, outputs, accounting } = parts
    this.#context = context
    this.#options = options
    this.#parts = parts
    this.#halt = new Halt(options.haltOnFailures, accounting, stop)
    if (options.keepOrder) this.#ordered = new OrderedOutput((line) => outputs.answers.write(line))
    stop.watch(
      () => 0,
      () => {},
      () => {
        outputs.answers.abandon()
        outputs.failures?.abandon()
      },
    )
    outputs.onLost = (error) => stop.end(error)
    outputs.onBlocked = (reason) => this.#outputBlocked(reason)
  }

  /** Why answers cannot be written at the moment; undefined where they can. */
  get waiting(): string | undefined {
    return this.#blocked
  }

  /** Resolves when the line has come to its end and what is to be written is written. */
  async handle(entry: Entry): Promise<void> {
    if (entry.kind === 'blank') return
    const { accounting, shard } = this.#parts
    accounting.records++
    if (shard !== undefined && shardOfText(keyOf(entry), shard.count) !== shard.index) {
      accounting.otherShards++
      return
    }
    const index = this.#index++
    this.#open++
    try {
      // In the order of the input those behind wait for this one, whatever becomes of it.
      const line = await this.#resultOf(entry).catch((error: unknown) => this.#endRun(error))
      await this.#deliver(index, line)
    } catch (error) {
      this.#endRun(error)
    } finally {
      this.#open--
      if (this.#open === 0) this.#idle?.()
    }
  }

  /** Waits for what is under way. */
  async finish(): Promise<void> {
    if (this.#open > 0) {
      await new Promise<void>((resolve) => {
        this.#idle = resolve
      })
    }
  }

  #endRun(error: unknown): undefined {
    const { stop } = this.#parts
    // What is asked already is still worth its answer.
    if (error instanceof ToolError && error.code === 'changed') stop.endSoon(error)
    else stop.end(error as Error)
  }

  async #deliver(index: number, line: string | undefined): Promise<void> {
    const { outputs, accounting } = this.#parts
    try {
      if (this.#ordered !== undefined) await this.#ordered.put(index, line)
      else if (line !== undefined) await outputs.answers.write(line)
      if (line !== undefined) accounting.answered++
    } catch (error) {
      if (line !== undefined) {
        accounting.left++
        // Whoever closes a pipe wants no more.
        if (!(error instanceof ClosedPipe)) accounting.unwritten++
      }
      throw error
    }
  }

  /** The output line of an entry; undefined where it gives none. */
  #resultOf(entry: Exclude<Entry, { kind: 'blank' }>): Promise<string | undefined> {
    return entry.kind === 'unusable' ? this.#refuse(entry) : this.#ask(entry)
  }

  async #refuse({ key, code, message, file, line, input }: Unusable): Promise<undefined> {
    const failure = { code, message: `${file}:${line}: ${message}`, retryable: false }
    const never = { attempts: 0, elapsedMs: 0, finishedTurns: [] }
    await this.#failed({ idToken: key, failure, ...never, input })
  }

  async #ask(entry: Usable): Promise<string | undefined> {
    const { accounting, clock } = this.#parts
    const { record } = entry
    const completer = this.#completer ?? (await this.#ready())
    if (completer === undefined) {
      accounting.left++
      return undefined
    }
    const began = clock.now()
    let completion: Completion
    try {
      if (this.#isAnswered(record, completer)) {
        accounting.skipped++
        return undefined
      }
      if (this.#isRepeated(entry)) {
        accounting.skipped++
        accounting.repeated++
        return undefined
      }
      completion = await completer.complete(record)
    } catch (error) {
      if (!(error instanceof RecordError)) {
        accounting.left++
        throw error
      }
      completion = doesNotFit(entry, error)
    }
    if (completion.kind === 'left') {
      accounting.addLeft(completion.discarded ?? 0)
      return undefined
    }
    if (completion.counts !== undefined) accounting.addAnswer(completion.counts)
    if (completion.kind === 'answered') return completion.line
    const { idToken, source } = record
    const input = { json: source }
    accounting.discardedTokens += completion.discarded ?? 0
    await this.#failed({ ...completion, idToken, elapsedMs: clock.now() - began, input })
    return undefined
  }

  /** Undefined where no server can be used: the run then ends. */
  async #ready(): Promise<Completer | undefined> {
    try {
      this.#completer = await this.#parts.engine.completer()
      return this.#completer
    } catch (error) {
      this.#parts.stop.end(error as Error)
      return undefined
    }
  }

  #isAnswered(record: InputRecord, completer: Completer): boolean {
    const { answered } = this.#parts.outputs
    const { onChanged } = this.#options
    const strict = onChanged === 'stop'
    const state = answered?.state(record.key, () => completer.hash(record), strict) ?? 'open'
    if (state !== 'changed') return state === 'answered'
    if (strict) {
      throw new ToolError(
        'changed',
        `the answer to '${record.key}' that is there answers another request (another prompt, model ` +
          'or parameter): --on-changed keep keeps such answers, --on-changed redo asks again',
        { place: { file: answered?.file ?? '' } },
      )
    }
    return onChanged === 'keep'
  }

  /** Whether the input has given the key before, in a run that asks for what is not answered. */
  #isRepeated({ record, file, line }: Usable): boolean {
    const { outputs, accounting } = this.#parts
    const taken = outputs.answered?.take(record.key, record.source) ?? 'first'
    if (taken === 'conflict' && outputs.answered) {
      outputs.answered.exitCode = EXIT.data
      if (accounting.conflicts++ === 0) {
        const message =
          `the key '${record.key.slice(0, 80)}' stands here for another record than before, which is ` +
          'asked: name the member that tells records apart with --key'
        this.#context.report.error(message, 'key-conflict', { file, line, column: 1 })
      }
    }
    return taken !== 'first'
  }

  async #failed(failed: FailedRecord): Promise<void> {
    const { accounting, outputs } = this.#parts
    const failure = {
      ...failed.failure,
      message: this.#parts.engine.masked(failed.failure.message),
    }
    accounting.failed++
    increment(accounting.failedByCode, failure.code)
    this.#context.report.line(this.#failureText({ ...failed, failure }))
    await outputs.failures?.write(failureLine({ ...failed, failure }))
    this.#halt.check()
  }

  #failureText({ idToken, failure, attempts, earlierAttempts = 0 }: FailedRecord): string {
    const id = tokenText(idToken)
    // Each turn has --retries of its own.
    const last = attempts - earlierAttempts
    const attempt = last > 0 ? `attempt ${last} of ${Math.max(last, this.#tries(failure))}` : ''
    const inside = [failure.detail, attempt].filter((part) => part).join(', ')
    const text = `ERROR sample ${id}: ${failure.message}${inside === '' ? '' : ` (${inside})`}`
    return printable(text)
  }

  #tries(failure: Failure): number {
    return failure.retryable ? this.#options.retries + 1 : 1
  }

  #outputBlocked(reason: string | undefined): void {
    this.#blocked = reason
    const { report } = this.#context
    if (reason === undefined) {
      this.#parts.engine.pool.resume('output')
      report.note('the output can be written again')
      return
    }
    this.#parts.engine.pool.hold('output')
    // Also where a person wants errors only: a night may pass so.
    report.error(`${reason}: answers are kept, no new requests until they can be written`, 'output')
  }
}

/** A record that the endpoint cannot be asked. */
function doesNotFit({ file, line }: Usable, { code, message }: RecordError): Completion {
  const failure = { code, message: `${file}:${line}: ${message}`, retryable: false }
  return { kind: 'failed', failure, attempts: 0, finishedTurns: [] }
}

/** The key of an entry as text. */
function keyOf(entry: Exclude<Entry, { kind: 'blank' }>): string {
  if (entry.kind === 'record') return entry.record.key
  return tokenText(entry.key)
}

function tokenText(token: string): string {
  return token.startsWith('"') ? String(JSON.parse(token)) : token
}
