import { pipeline } from 'node:stream/promises'
import type { Context } from '../../cli/command.ts'
import { type OpenWork, Progress } from '../../cli/progress.ts'
import type { Clock } from '../../core/clock.ts'
import { counted } from '../../core/quantity.ts'
import type { Shard } from '../../core/shard.ts'
import { ClosedPipe, EXIT, ToolError } from '../../core/tool-error.ts'
import type { TextLine } from '../../streams/split-lines.ts'
import { concurrentStage } from '../../streams/stage.ts'
import { isUnread } from '../inputs.ts'
import { noteIdle, resolveShard } from '../shard.ts'
import { writeStats } from '../stats.ts'
import { Accounting } from './accounting.ts'
import type { EndpointPool } from './endpoint-pool.ts'
import { Engine } from './engine.ts'
import { EntryReader } from './entries.ts'
import { countLines, inputLines } from './input-lines.ts'
import { type FanoutOptions, openAtMost } from './options.ts'
import { type Outputs, openOutputs } from './outputs.ts'
import { RecordHandler } from './record-handler.ts'
import { recordRules, requestParameters } from './settings.ts'
import { Stop } from './stop.ts'
import { openTrace, type Trace } from './trace.ts'

/** Records in memory at most, per request that may be open: retries that wait are among them. */
const WINDOW = 4
/**
 * Records that wait for a free request, each with its promises and strings: the garbage collector
 * copies what lives, and with four times the concurrency waiting that was an eighth of a run's CPU.
 */
const AHEAD = 16

/** The program of fanout-complete: lines in, records asked many at a time, answers out. */
export async function fanout(
  context: Context,
  given: FanoutOptions,
  operands: string[],
): Promise<number> {
  const { output, failures, stats, trace: traceFile } = given
  const files = { output, failures, stats, trace: traceFile }
  const { shard, names } = resolveShard(context, given, files)
  const options = { ...given, ...names }
  const rules = recordRules(options)
  const parameters = requestParameters(options)
  const clock = context.clock(options.clockSpeed)
  const accounting = new Accounting()
  const stop = new Stop(context, clock, options.drain)
  const outputs = await openOutputs(context, options, operands, clock, rules.key, shard).catch(
    (error: unknown) => {
      stop.close()
      throw error
    },
  )
  const engine = new Engine(context, options, {
    clock,
    accounting,
    stop,
    parameters,
    outputWait: () => outputs.answers.waited,
  })
  const parts = { clock, accounting, stop, outputs, engine, shard }
  const handler = new RecordHandler(context, options, parts)
  const waiting = (): string | undefined => engine.waiting ?? handler.waiting
  let trace: Trace | undefined
  const live = { engine, waiting, shards: shard?.count ?? 1 }
  const progress = startProgress(context, options, operands, clock, accounting, live)
  let exitCode: number = EXIT.ok
  try {
    trace = await openTrace(context, options, { clock, accounting, engine, waiting })
    const lines = inputLines(context, operands, options, (code) => {
      exitCode = Math.max(exitCode, code)
    })
    await readAll(lines, new EntryReader(rules), handler, engine.pool, stop, options)
    await handler.finish()
    // A run without an answer is one too: --overwrite leaves nothing of the one before.
    if (!stop.requested && exitCode < EXIT.trouble) outputs.answers.begin()
  } finally {
    await handler.finish()
    engine.close()
    progress.stop()
    await trace?.close()
    await closeOutputs(outputs, stop)
    stop.close()
    await writeStats(context, options.stats, {
      ...accounting.toJSON(),
      endpoints: perEndpoint(engine),
    })
  }
  // Whoever closed the pipe wants no more; a signal has its last words all the same.
  const isClosed = stop.fatal instanceof ClosedPipe && context.interrupt.signal === undefined
  const isNothingRead = isUnread(exitCode, accounting.records) && !stop.requested
  if (!isClosed && !isNothingRead) conclude(context, options, accounting, stop, shard)
  if (stop.fatal !== undefined) throw stop.fatal
  const failed = accounting.failed > 0 ? EXIT.data : EXIT.ok
  return Math.max(exitCode, outputs.exitCode, trace?.exitCode ?? EXIT.ok, failed)
}

/** Says what became of the input, and where a shard had nothing to do. */
function conclude(
  context: Context,
  options: FanoutOptions,
  counts: Accounting,
  stop: Stop,
  shard: Shard | undefined,
): void {
  summarise(context, options, counts, stop)
  if (counts.answered + counts.failed + counts.left > 0 || stop.requested) return
  noteIdle(context, shard, counts.skipped > 0 ? 'all of it is answered' : 'it has no record')
}

/** Reads until the input ends or the run is stopped; resolves when all work is done. */
async function readAll(
  lines: AsyncIterable<TextLine>,
  reader: EntryReader,
  handler: RecordHandler,
  pool: EndpointPool,
  stop: Stop,
  options: FanoutOptions,
): Promise<void> {
  const most = openAtMost(options) * WINDOW
  const { stream, more } = concurrentStage(
    { most, isWanted: () => pool.waiting < AHEAD },
    (line: TextLine) => handler.handle(reader.read(line)),
  )
  pool.onServed = more
  try {
    await pipeline(lines, stream, { signal: stop.reading })
  } catch (error) {
    if (!stop.requested) throw error
  }
}

function startProgress(
  context: Context,
  options: FanoutOptions,
  operands: string[],
  clock: Clock,
  accounting: Accounting,
  {
    engine,
    waiting,
    shards,
  }: { engine: Engine; waiting: () => string | undefined; shards: number },
): Progress {
  let total = options.total
  if (total === undefined) {
    void countLines(operands).then((count) => {
      // About as many records are in each shard.
      total = count === undefined ? count : Math.ceil(count / shards)
    })
  }
  const progress = new Progress({
    clock,
    report: context.report,
    state: () => ({
      ...engine.streams,
      done: accounting.answered + accounting.failed + accounting.skipped,
      total,
      errors: accounting.failed,
      retries: accounting.retries,
      inFlight: engine.pool.inUse,
      completionTokens: accounting.completionTokens,
      answered: accounting.answered,
      waiting: waiting(),
      pace: engine.pace,
      ...openWork(engine, accounting),
    }),
    live: !options.quiet && context.terminal !== undefined,
    columns: () => context.terminal?.columns ?? 80,
    every: options.quiet ? 0 : options.progressEvery,
  })
  if (options.drainOn !== 'none') context.interrupt.termOn(`SIG${options.drainOn}`)
  if (options.drainOn !== 'USR1') context.onUsr1(() => progress.show())
  return progress
}

/** The answers that are open and those that have come, in one unit. */
function openWork(engine: Engine, { lengths, durations }: Accounting): OpenWork {
  const { delivered } = engine.streams
  const streams = delivered > 0
  return {
    lengths: streams ? lengths : durations,
    openLengths: engine.openLengths(streams),
    delivered: streams ? delivered : undefined,
  }
}

/** Counts by server, for --stats. */
function perEndpoint(engine: Engine): Record<string, object> {
  const entries = engine.pool.endpoints.map(({ server, counts, peak }) => [
    server.endpoint.url,
    { ...counts, peak_open: peak },
  ])
  return Object.fromEntries(entries) as Record<string, object>
}

async function closeOutputs(outputs: Outputs, stop: Stop): Promise<void> {
  try {
    await outputs.close()
  } catch (error) {
    stop.end(error as Error)
  }
}

/** The last words: what was done, what is left, and how to go on. */
function summarise(context: Context, options: FanoutOptions, counts: Accounting, stop: Stop): void {
  const { report } = context
  if (counts.cutByLength > 0) {
    const answers = counted(counts.cutByLength, 'answer is', 'answers are')
    report.warning(`${answers} cut by the token limit (finish_reason length)`)
  }
  if (counts.empty > 0) {
    const answers = counted(counts.empty, 'answer is', 'answers are')
    const them = counts.empty === 1 ? 'it' : 'them'
    report.warning(`${answers} empty (dedupe-completed --redo empty runs ${them} again)`)
  }
  if (counts.repeated > 0) {
    const repeat = ['record repeats a key and was', 'records repeat a key and were'] as const
    report.warning(`${counted(counts.repeated, ...repeat)} not asked`)
  }
  if (counts.unwritten > 0) {
    const lost = [
      'answer is lost: it could not be written. It is',
      'answers are lost: they could not be written. They are',
    ] as const
    report.error(`${counted(counts.unwritten, ...lost)} asked again`, 'lost')
  }
  if (counts.begun > 0) {
    const begun = counted(counts.begun, 'conversation was', 'conversations were')
    const tokens = counted(counts.begunTokens, 'token', 'tokens')
    report.warning(`${begun} given up after ${tokens} of finished turns: they are asked for again`)
  }
  const unanswered = counts.left - counts.unwritten
  const left = unanswered > 0 || stop.requested ? `, ${unanswered} read but not answered` : ''
  const others = options.shard === undefined ? '' : `, ${counts.otherShards} of other shards`
  report.note(
    `${counted(counts.records, 'record')}: ${counts.answered} answered, ${counts.failed} failed, ` +
      `${counts.skipped - counts.repeated} completed before${left}${others}`,
  )
  const unfinished = stop.requested || counts.failed > 0
  if (!unfinished || (stop.fatal instanceof ToolError && counts.unwritten === 0)) return
  report.note(
    options.output === undefined
      ? 'to go on: run dedupe-completed --completed OUTPUT before this command, appending to OUTPUT'
      : `to go on: the same command with --resume (without --overwrite)`,
  )
}
