import type { IncomingMessage } from 'node:http'
import { unauthorized } from './api-error.ts'
import { type Clock, startClock } from './clock.ts'
import { Engine } from './engine.ts'
import { FaultDraw } from './faults.ts'
import { Ledger, type StatsSnapshot } from './ledger.ts'
import { RequestMetrics } from './metrics.ts'
import type { Settings } from './options.ts'
import { mix } from './random.ts'
import { Scheduler } from './scheduler.ts'

/** What all requests of one server share. */
export class World {
  readonly settings: Settings
  readonly clock: Clock
  readonly engine: Engine
  readonly metrics = new RequestMetrics()
  readonly ledger = new Ledger()
  readonly faultDraw: FaultDraw
  /** The server is killed, by an outage or by `close`. */
  down = false
  /** The engine is dead, the HTTP server is not. */
  sick = false
  #requests = 0

  constructor(settings: Settings) {
    this.settings = settings
    this.clock = startClock(settings.speed)
    this.engine = new Engine(new Scheduler(settings, this.metrics), this.clock)
    this.faultDraw = new FaultDraw(settings.faults, settings.faultSeed)
  }

  /** 32 hexadecimal digits, as of vLLM's UUIDs; the n-th is always the same. */
  nextRequestId(): string {
    const request = this.#requests++
    const words = [0, 1, 2, 3].map((word) => mix(this.settings.seed, 4 * request + word))
    return words.map((word) => word.toString(16).padStart(8, '0')).join('')
  }

  /** @throws ApiError 401 where a key is asked for and another or none is given */
  authorize({ headers }: IncomingMessage): void {
    const { apiKey } = this.settings
    if (apiKey !== undefined && headers.authorization !== `Bearer ${apiKey}`) throw unauthorized()
  }

  snapshot(): StatsSnapshot {
    this.engine.refresh()
    const { scheduler } = this.engine
    const { requests, connections, faults, outages, deliveredTokens, wastedTokens } = this.ledger
    return {
      model: this.settings.model,
      speed: this.settings.speed,
      uptime_ms: Math.round(this.clock.now()),
      requests: { ...requests },
      tokens: {
        prompted: scheduler.promptTokens,
        generated: scheduler.generatedTokens,
        delivered: deliveredTokens,
        wasted: wastedTokens,
        in_flight: this.engine.tokensInFlight,
      },
      scheduler: {
        running: scheduler.running,
        waiting: scheduler.waiting,
        peak_running: scheduler.peakRunning,
        preemptions: scheduler.preemptions,
        kv_cache_usage: scheduler.kvCacheUsage,
      },
      connections: { ...connections },
      faults: { ...faults },
      outages,
    }
  }
}
