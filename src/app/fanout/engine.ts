import type { Context } from '../../cli/command.ts'
import type { Clock } from '../../core/clock.ts'
import { Diagnosis, type Finding } from '../../core/diagnosis.ts'
import { RetryBudget } from '../../core/retry-budget.ts'
import { RETRY_DEFAULTS } from '../../core/retry-policy.ts'
import { Deadlines } from '../../net/deadlines.ts'
import { serverError } from '../../net/endpoint.ts'
import type { Accounting } from './accounting.ts'
import { Asker } from './asker.ts'
import { Completer } from './completer.ts'
import { EndpointPool, type PooledEndpoint } from './endpoint-pool.ts'
import { askModels } from './models.ts'
import { type FanoutOptions, openAtMost } from './options.ts'
import { Pacer } from './pacer.ts'
import { Server } from './server.ts'
import type { Stop } from './stop.ts'
import { TokenCosts } from './token-costs.ts'

const ESTIMATED =
  'replies do not tell what they cost (usage): --tpm counts the pieces of streams and a token for ' +
  'every four bytes of other text'

/** Milliseconds between two looks for a common cause. */
const LOOK_EVERY = 10_000

/** Milliseconds, undefined while not known. */
interface FirstTokenTimes {
  firstToken: number | undefined
  firstTokenFloor: number | undefined
}

export interface EngineParts {
  clock: Clock
  accounting: Accounting
  stop: Stop
  /** Members of every request body, as JSON text by name. */
  parameters: ReadonlyMap<string, string>
  /** Milliseconds for which the oldest answer has waited to be written. */
  outputWait: () => number
}

/** What asks: the servers with their limits, deadlines and retries, put together from the options. */
export class Engine {
  readonly pool: EndpointPool
  #context: Context
  #options: FanoutOptions
  #parts: EngineParts
  #deadlines: Deadlines
  #asker: Asker
  #completer: Promise<Completer> | undefined
  #diagnosis: Diagnosis
  #costs: TokenCosts
  #model: string | undefined
  #pacers: Pacer[] = []
  #stopLooking: () => void
  #loop = performance.eventLoopUtilization()
  #cpu = process.cpuUsage()

  constructor(context: Context, options: FanoutOptions, parts: EngineParts) {
    const { clock, accounting, stop } = parts
    this.#context = context
    this.#options = options
    this.#parts = parts
    const servers = Server.all(context, options, stop.reading)
    const concurrency = openAtMost(options)
    this.#diagnosis = new Diagnosis(concurrency)
    this.#costs = new TokenCosts({
      limited: options.tpm !== undefined,
      maxTokens: options.maxTokens,
      onEstimate: () => context.report.warning(ESTIMATED, 'no-usage'),
    })
    this.pool = this.#makePool(servers, concurrency)
    const budgets = {
      connect: options.connectTimeout,
      firstToken: options.firstTokenTimeout,
      idle: options.idleTimeout,
      total: options.timeout,
    }
    this.#deadlines = new Deadlines(clock, budgets, options.clockSpeed)
    this.#asker = new Asker({
      clock,
      random: context.random,
      retry: { ...RETRY_DEFAULTS, retries: options.retries },
      budget: new RetryBudget(options.retryBudget),
      pool: this.pool,
      deadlines: this.#deadlines,
      maxAnswer: options.maxAnswer,
      accounting,
      costs: this.#costs,
      diagnosis: this.#diagnosis,
      onFinding: (finding) => this.#tell(finding),
      onFatal: (error) => (this.pool.seen ? stop.endSoon(error) : stop.end(error)),
    })
    this.#stopLooking = clock.every(LOOK_EVERY, () => this.#look())
    if (options.concurrency === 'auto') this.#startPacers(options.maxConcurrency)
    stop.watch(
      () => this.pool.inUse + this.#asker.between,
      () => {
        this.pool.stop()
        this.#asker.stop()
      },
      () => {
        this.#asker.giveUp()
        this.pool.abort()
      },
    )
  }

  /** Why nothing can be asked at the moment; undefined where something can. */
  get waiting(): string | undefined {
    if (!this.pool.allResting) return undefined
    return `${this.pool.endpoints.map(({ server }) => server.endpoint.url).join(', ')} out`
  }

  /** A text from a server without the key that it may echo. */
  masked(text: string): string {
    return this.pool.endpoints.reduce((masked, { server }) => server.masked(masked), text)
  }

  /**
   * What answers records. The model is asked for when the first record comes, so that an empty input
   * asks no server.
   *
   * @throws ToolError where no server can be used
   */
  completer(): Promise<Completer> {
    this.#completer ??= this.#makeCompleter()
    return this.#completer
  }

  /** How the pace is set and why, for the progress line; undefined where it is fixed. */
  get pace(): string | undefined {
    const parts = this.#pacers.map(({ controller }) => `${controller.limit}: ${controller.reason}`)
    return parts.length === 0 ? undefined : `limit ${parts.join(' | ')}`
  }

  /** What streams have brought and how long first tokens take, over all servers. */
  get streams(): { delivered: number } & FirstTokenTimes {
    const { endpoints } = this.pool
    const sum = (of: (endpoint: PooledEndpoint) => number): number =>
      endpoints.reduce((total, endpoint) => total + of(endpoint), 0)
    // Of several servers the slowest is what a person wants to see.
    const times = endpoints.flatMap(({ firstTokens }) =>
      firstTokens.present === undefined ? [] : [firstTokens],
    )
    const slowest = times.toSorted((a, b) => b.present! - a.present!)[0]
    return {
      delivered: sum(({ delivered }) => delivered),
      firstToken: slowest?.present,
      firstTokenFloor: slowest?.floor,
    }
  }

  /** How far each open answer has come: in pieces where any has text, else in milliseconds. */
  openLengths(streams: boolean): number[] {
    const attempts = this.pool.endpoints.flatMap((endpoint) => [...endpoint.attempts])
    if (streams) return attempts.map(({ pieces }) => pieces).filter((pieces) => pieces > 0)
    const now = this.#parts.clock.date()
    return attempts.map(({ startedAt }) => now - startedAt)
  }

  /** What steers each server, in the order of the pool's; empty where the pace is fixed. */
  get pacers(): readonly Pacer[] {
    return this.#pacers
  }

  close(): void {
    for (const pacer of this.#pacers) pacer.stop()
    this.#stopLooking()
    this.#deadlines.stop()
    this.pool.close()
  }

  #startPacers(max: number): void {
    const { clock } = this.#parts
    this.#pacers = this.pool.endpoints.map((endpoint) => {
      const pacer = new Pacer(endpoint, {
        clock,
        max,
        model: () => this.#model,
        waiting: () => this.pool.waiting > 0,
        onChange: () => this.pool.serve(),
        onUselessMetrics: ({ server }, why) => {
          const message = `GET /metrics ${why}: the pace is steered by first tokens alone`
          this.#context.report.warning(message, 'no-metrics', { file: server.endpoint.url })
        },
      })
      endpoint.pace = pacer.controller
      return pacer
    })
  }

  /** Looks for one cause behind what goes wrong. */
  #look(): void {
    const loop = performance.eventLoopUtilization()
    const { utilization, active, idle } = performance.eventLoopUtilization(loop, this.#loop)
    const { user, system } = process.cpuUsage(this.#cpu)
    const loopTime = active + idle
    this.#loop = loop
    this.#cpu = process.cpuUsage()
    const findings = this.#diagnosis.look({
      now: this.#parts.clock.now(),
      ...this.#deadlines.standing(),
      // A loop that waits for a core which others use is busy, but uses none.
      loopBusy: Math.min(utilization, (user + system) / 1000 / loopTime),
      loopTime,
      uptime: performance.now(),
      outputWait: this.#parts.outputWait(),
    })
    for (const finding of findings) this.#tell(finding)
  }

  #tell({ code, message }: Finding): void {
    this.#context.report.warning(message, code)
  }

  async #makeCompleter(): Promise<Completer> {
    const { endpoint, system, noStream, model, historyReasoning, onLength } = this.#options
    this.#model = model ?? (await this.#onlyModel())
    return new Completer(this.#asker, {
      endpoint,
      model: this.#model,
      system,
      stream: !noStream,
      historyReasoning,
      onLength,
      parameters: this.#parts.parameters,
    })
  }

  /** The one model that all servers have; one that cannot be reached is left to rest. */
  async #onlyModel(): Promise<string> {
    const { endpoints } = this.pool
    const { clock, stop } = this.#parts
    const { report, random } = this.#context
    const servers = endpoints.map(({ server }) => server)
    const lists = await askModels(servers, {
      clock,
      random,
      maxOutage: this.#options.maxOutage,
      stop,
      onBusy: ({ message, place }) =>
        report.warning(`${message}: asking again for up to --max-outage`, 'outage', place),
    })
    const reached = lists.filter((list) => list.status === 'fulfilled')
    const first = lists[0]!
    if (reached.length === 0 && first.status === 'rejected') throw first.reason
    for (const [index, list] of lists.entries()) {
      if (list.status === 'rejected') endpoints[index]!.outage.begin()
    }
    const names = new Set(reached.flatMap(({ value }) => value))
    const [name] = names
    if (names.size === 1 && name !== undefined) return name
    const message = `there are several models, name one with --model: ${[...names].join(', ')}`
    throw serverError('model', endpoints[0]!.server.endpoint, this.masked(message))
  }

  #makePool(servers: Server[], concurrency: number): EndpointPool {
    const { clock, accounting, stop } = this.#parts
    const { rpm, tpm, maxOutage } = this.#options
    const { report } = this.#context
    const place = ({ server }: PooledEndpoint): { file: string } => ({ file: server.endpoint.url })
    return new EndpointPool({
      clock,
      servers,
      concurrency,
      rpm: rpm ?? Number.POSITIVE_INFINITY,
      tpm: tpm ?? Number.POSITIVE_INFINITY,
      maxOutage,
      tokensOfOne: () => this.#costs.ofOne,
      onOutage: (endpoint) => {
        accounting.outages++
        const others = servers.length > 1 ? ', its requests go elsewhere' : ''
        const message = `the server is out: asking until it is back${others}; no attempt is lost`
        report.warning(message, 'outage', place(endpoint))
      },
      onBack: ({ server }, duration) => {
        report.note(`${server.endpoint.url} is back after ${Math.round(duration / 1000)} s`)
      },
      onGone: ({ server }) => {
        stop.endSoon(server.unreachable('it did not come back (--max-outage)'))
      },
    })
  }
}
