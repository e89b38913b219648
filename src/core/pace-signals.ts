import { CacheOutlook } from './pace-cache.ts'
import { FirstTokenFloor } from './pace-floor.ts'
import { TokenRate } from './pace-rate.ts'
import { note } from './recent.ts'

/** Seconds of the window over which waiting and running requests are judged. */
const WINDOW = 5
/** So few may be one request after the other: they are a queue if some wait while as many get a token. */
const FEW = 2
const LONGEST_WINDOW = 20
/** Weights of the newest second in the rate of first tokens: to see a burst, and to see the mean. */
const QUICK = 0.1
const SLOW = 0.02
/** Seconds after which metrics are not believed that tell of no queue. */
const PATIENCE = 30
/** First tokens that are noted at most. */
const MOST_NOTED = 1000
/** Requests may wait this long (s) in the server's queue, so that its slots stay full. */
const WAIT = 2

/** What the server's /metrics tell. */
export interface PaceMetrics {
  waiting: number
  /** Share of the KV cache, 0 to 1. */
  kvUse: number
  /** Since the server's start; undefined where it is not told. */
  preemptions: number | undefined
}

/** What the client can see of one server in a second. */
export interface PaceView {
  /** Milliseconds. */
  now: number
  /** Open requests, and those of them without a first token. */
  open: number
  unstarted: number
  /** Open requests whose answers come whole: of these nobody knows before their end that they wait. */
  unstreamed: number
  /** Of the server's /metrics; 'stale' where the last ones are too old, undefined without any. */
  metrics: PaceMetrics | 'stale' | undefined
  /**
   * Tokens that this server has delivered since the start, those of unfinished answers included;
   * pieces or characters do as well. Undefined where nobody counts them: then harm to the throughput
   * goes unseen.
   */
  tokens: number | undefined
  /** No more input: nothing can be learnt from fewer open requests. */
  exhausted: boolean
}

/**
 * What the pace is steered by: requests in flight that have no first token are the client's own view
 * of the server's queue, once those that are only being prefilled are taken off.
 */
export class PaceSignals {
  /** What a first token takes at a server without a queue. */
  readonly floor = new FirstTokenFloor()
  /** Delivered tokens. */
  readonly delivered = new TokenRate()
  /** The server's KV cache, where that is told. */
  readonly cache = new CacheOutlook()
  /**
   * Requests that wait in the server's queue: now, and least (0 until known) and median of the last
   * seconds.
   */
  waiting = 0
  leastWaiting = 0
  medianWaiting = 0
  /** The server has taken a request of ours. */
  hasStarted = false
  /** The number of running requests grows: a queue may be a burst of prefills. */
  rising = false
  /** Milliseconds that the first tokens took since somebody began to note them. */
  lately: number[] = []
  /** Milliseconds a request takes in the mean. */
  meanLatency = 30_000
  /** First tokens a second, over a minute. */
  meanRate = 0
  /** Completed answers a second. */
  completions = 0
  /**
   * Requests that come and go a second, over a minute: less than either the first tokens, which are
   * many while a ramp fills the slots, or the completions.
   */
  turnover = 0
  /** Queues up to these lengths are the noise of completions: while ramping, and after that. */
  noise = 1
  slack = 1

  #rate = 0
  #meanCompletions = 0
  #firstTokens = 0
  #completed = 0
  /** Seconds in which more of ours waited than the metrics told. */
  #untold = 0
  #waiting: number[] = []
  #running: number[] = []

  firstToken(ms: number): void {
    this.hasStarted = true
    this.#firstTokens++
    if (this.lately.length < MOST_NOTED) this.lately.push(ms)
    this.floor.add(ms)
  }

  /** An answer that comes whole has ended, so that the server has taken another request meanwhile. */
  admitted(): void {
    this.hasStarted = true
    this.#firstTokens++
  }

  completed(latency: number): void {
    this.#completed++
    this.meanLatency += 0.05 * (latency - this.meanLatency)
  }

  /** Takes the second's view; to be called every second. */
  second(view: PaceView): void {
    const { now, open, unstarted, unstreamed, metrics, tokens } = view
    this.floor.advance(now)
    this.delivered.add(now, tokens)
    this.#rate += QUICK * (this.#firstTokens - this.#rate)
    this.meanRate += SLOW * (this.#firstTokens - this.meanRate)
    this.#firstTokens = 0
    this.completions += QUICK * (this.#completed - this.completions)
    this.#meanCompletions += SLOW * (this.#completed - this.#meanCompletions)
    this.turnover = Math.min(this.meanRate, this.#meanCompletions)
    this.#completed = 0
    if (metrics === 'stale') return
    // While a long prompt is being prefilled those behind it wait, and are soon no queue any more.
    if (!this.delivered.stands) this.#queue(unstarted, unstreamed, metrics)
    this.cache.second(metrics?.kvUse ?? 0, this.meanLatency)
    const running = open - unstarted
    note(this.#running, running, WINDOW)
    const before = this.#running[0]!
    this.rising = running - before > Math.max(1, 0.02 * before)
    this.noise = 1 + 2 * Math.sqrt(this.#rate)
    if (metrics === undefined) this.noise = Math.max(this.noise, 0.02 * running)
    this.slack = Math.min(this.noise, WAIT * this.turnover)
  }

  /** What waited before a cut was done says nothing of what waits after it. */
  forgetWaiting(): void {
    this.#waiting = []
    this.leastWaiting = 0
  }

  #queue(unstarted: number, unstreamed: number, metrics: PaceMetrics | undefined): void {
    const floor = Number.isFinite(this.floor.value) ? this.floor.value / 1000 : 0
    const own = Math.max(0, unstarted - 1.5 * this.#rate * floor)
    // A queue in front of the server, in a proxy, is not in its metrics. Once so, it is not asked again.
    if (metrics !== undefined && this.#untold <= PATIENCE) {
      this.#untold = own > metrics.waiting + this.noise ? this.#untold + 1 : 0
    }
    const told = metrics !== undefined && this.#untold <= PATIENCE
    // The total of `waiting` holds other clients' requests: steering by it starves one of two.
    const queue = told ? Math.min(metrics.waiting, unstarted + unstreamed) : own
    this.waiting = Math.max(own, queue)
    note(this.#waiting, queue, LONGEST_WINDOW)
    this.leastWaiting = this.#least(WINDOW)
    if (this.leastWaiting <= FEW) {
      const window = Math.ceil(FEW / this.meanRate)
      this.leastWaiting = this.#least(Math.min(LONGEST_WINDOW, Math.max(WINDOW, window)))
    }
    const sorted = this.#waiting.slice(-WINDOW).toSorted((a, b) => a - b)
    this.medianWaiting = sorted[Math.floor(sorted.length / 2)]!
  }

  #least(window: number): number {
    return this.#waiting.length < window ? 0 : Math.min(...this.#waiting.slice(-window))
  }
}
