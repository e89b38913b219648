/** Seconds of the window over which waiting and running requests are judged. */
const WINDOW = 5
/** First-token times per median; the floor is the least of these medians. */
const MEDIAN_OF = 10
/** The floor rises by this a second, so that it follows a server that became slower. */
const FLOOR_DRIFT = 1.0002
/** Weight of the newest second in the rate of first tokens. */
const EWMA = 0.1

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
  /** Of the server's /metrics; 'stale' where the last ones are too old, undefined without any. */
  metrics: PaceMetrics | 'stale' | undefined
  /** Tokens delivered since the start; characters do where tokens are not told. */
  tokens: number
  /** No more input: nothing can be learnt from fewer open requests. */
  exhausted: boolean
}

/**
 * What the pace is steered by: requests in flight that have no first token are the client's own view
 * of the server's queue, once those that are only being prefilled are taken off.
 */
export class PaceSignals {
  /** First tokens a second. */
  rate = 0
  /** The least median of first-token times, in milliseconds: a server without a queue. */
  floor = Number.POSITIVE_INFINITY
  /** Requests that wait in the server's queue: least and median of the last seconds. */
  leastWaiting = 0
  medianWaiting = 0
  /** The number of running requests grows: a queue may be a burst of prefills. */
  rising = false
  /** Milliseconds a request takes in the mean. */
  meanLatency = 30_000

  #firstTokens = 0
  #times: number[] = []
  #waiting: number[] = []
  #running: number[] = []

  firstToken(ms: number): void {
    this.#firstTokens++
    this.#times.push(ms)
    if (this.#times.length < MEDIAN_OF) return
    const median = this.#times.toSorted((a, b) => a - b)[MEDIAN_OF / 2]!
    this.floor = Math.min(this.floor, median)
    this.#times = []
  }

  completed(latency: number): void {
    this.meanLatency += 0.05 * (latency - this.meanLatency)
  }

  /** Takes the second's view; to be called every second. */
  second({ open, unstarted, metrics }: PaceView): void {
    this.rate += EWMA * (this.#firstTokens - this.rate)
    this.#firstTokens = 0
    this.floor *= FLOOR_DRIFT
    const floor = Number.isFinite(this.floor) ? this.floor / 1000 : 0
    const own = Math.max(0, unstarted - 1.5 * this.rate * floor)
    // The total of `waiting` holds other clients' requests: steering by it starves one of two.
    const told = typeof metrics === 'object'
    if (metrics !== 'stale') {
      this.#note(this.#waiting, told ? Math.min(metrics.waiting, unstarted) : own)
    }
    const running = open - unstarted
    this.#note(this.#running, running)
    const before = this.#running[0]!
    this.rising = running - before > Math.max(1, 0.02 * before)
    const sorted = this.#waiting.toSorted((a, b) => a - b)
    this.leastWaiting = sorted[0] ?? 0
    this.medianWaiting = sorted[Math.floor(sorted.length / 2)] ?? 0
  }

  /** A queue this long is the noise of completions: they come in bursts of about √rate. */
  slack(view: PaceView): number {
    const slack = 1 + 2 * Math.sqrt(this.rate)
    if (view.metrics !== undefined) return slack
    return Math.max(slack, 0.02 * (view.open - view.unstarted))
  }

  #note(list: number[], value: number): void {
    list.push(value)
    if (list.length > WINDOW) list.shift()
  }
}
