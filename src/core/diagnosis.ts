import type { Failure } from './failure.ts'
import { formatDuration } from './quantity.ts'

/** One cause behind many failures, and what to do about it. */
export interface Finding {
  code: string
  message: string
}

/** How the run stands at a moment. */
export interface Snapshot {
  /** Milliseconds. */
  now: number
  /** Open requests, those of them without a first token, and the longest such wait in ms. */
  open: number
  unstarted: number
  longestWait: number
  /** Share of the last period in which our own event loop was busy with a core of its own, 0 to 1. */
  loopBusy: number
  /** How long that period was, and how long the process has run: milliseconds of the wall's clock. */
  loopTime: number
  uptime: number
  /** Milliseconds for which the oldest answer has waited to be written. */
  outputWait: number
}

/** So many failures of one kind are needed before a cause is named. */
const ENOUGH = 5
/** Ages that differ by no more than this share belong together. */
const SAME_AGE = 0.05
/** Silences shorter than this (ms) are no proxy's doing. */
const SHORTEST_SILENCE = 5000
/** The same on a kept connection: no proxy gives up sooner, and a busy client is late by seconds. */
const SHORTEST_STALE = 45_000
/** This share of the failures must show the cause. */
const MOST = 0.6
/** All requests unstarted for so long (ms): the server works for others. */
const QUEUED_BY_OTHERS = 60_000
/** Failures that are remembered for their ages. */
const REMEMBERED = 1000

const CUTS = new Set(['closed', 'reset', 'no-finish', 'http-504'])
/** An answer that waits longer than this (ms) to be written waits for a slow disk or reader. */
const SLOW_WRITE = 5000
/**
 * Our own process is busy where it was so in the mean over this long (ms, by the wall), its start left
 * out; others that use the machine take the rest of the core now and then.
 */
const BUSY = 0.8
const BUSY_FOR = 8000
const START = 3000
/** A longer pause that a server asks for (ms) looks like a run that hangs. */
const LONG_PAUSE = 600_000
/** Descriptors beside those of the requests: files, pipes, the loop, probes. */
const OTHER_DESCRIPTORS = 64

/** Proxies by the silence, in seconds, after which they cut (their documented defaults). */
const PROXIES: readonly [number, string][] = [
  [50, 'HAProxy'],
  [60, 'nginx or an AWS load balancer'],
  [100, 'Cloudflare'],
  [120, 'a Cloudflare tunnel'],
  [300, 'a GCP load balancer'],
]

/** Looks for one cause behind many failures, and names each once. */
export class Diagnosis {
  #silences: number[] = []
  #requests = 0
  #limited = 0
  #stale = 0
  /** Milliseconds since the last verdict, and how many of them were busy. */
  #loopTime = 0
  #busyTime = 0
  #slowPeriods = 0
  #named = new Set<string>()
  #concurrency: number

  /** @param concurrency requests that may be open at one time */
  constructor(concurrency: number) {
    this.#concurrency = concurrency
  }

  /** Notes an attempt that was made. */
  request(): void {
    this.#requests++
  }

  /** Notes a failed attempt; gives the cause that it makes plain, if any. */
  failure(failure: Failure): Finding[] {
    if (failure.httpStatus === 429) this.#limited++
    if (failure.stale) this.#stale++
    // What was closed while it was idle is found so when it is used: no answer was cut.
    const least = failure.stale ? SHORTEST_STALE : SHORTEST_SILENCE
    if (CUTS.has(failure.code) && (failure.silenceMs ?? 0) >= least) {
      this.#silences.push(failure.silenceMs!)
      if (this.#silences.length > REMEMBERED) this.#silences.shift()
    }
    return [this.#proxy(), this.#rateLimit(), this.#idleClose(), this.#descriptors(failure)]
      .filter((finding) => finding !== undefined)
      .filter(({ code }) => this.#isNew(code))
  }

  /** Notes that the failure is tried again, after the pause that the server may ask for. */
  retry({ retryAfter = 0 }: Failure): Finding[] {
    if (retryAfter <= LONG_PAUSE || !this.#isNew('retry-after')) return []
    const message =
      `the server asks to wait ${formatDuration(retryAfter)} before the next try (Retry-After): ` +
      'the run does so'
    return [{ code: 'retry-after', message }]
  }

  /** Looks at how the run stands, every ten seconds or so. */
  look(snapshot: Snapshot): Finding[] {
    this.#slowPeriods = snapshot.outputWait > SLOW_WRITE ? this.#slowPeriods + 1 : 0
    return [this.#queuedByOthers(snapshot), this.#busy(snapshot), this.#slowOutput()]
      .filter((finding) => finding !== undefined)
      .filter(({ code }) => this.#isNew(code))
  }

  #proxy(): Finding | undefined {
    if (this.#silences.length < ENOUGH) return undefined
    const sorted = this.#silences.toSorted((a, b) => a - b)
    const median = sorted[Math.floor(sorted.length / 2)]!
    const near = sorted.filter((age) => Math.abs(age - median) <= median * SAME_AGE)
    if (near.length < Math.max(ENOUGH, MOST * sorted.length)) return undefined
    const seconds = Math.round(median / 1000)
    const known = PROXIES.find(([age]) => Math.abs(age - seconds) <= age * SAME_AGE)
    const who = known === undefined ? '' : ` (as ${known[1]} does by default)`
    return {
      code: 'proxy-cut',
      message:
        `${near.length} answers were cut after about ${seconds} s of silence: something between us ` +
        `and the server cuts${who}. Raise its read timeout, let vLLM send comments ` +
        '(--sse-keep-alive-interval), or lower --concurrency so that requests wait less',
    }
  }

  #rateLimit(): Finding | undefined {
    if (this.#limited < 2 * ENOUGH || this.#limited < 0.1 * this.#requests) return undefined
    return {
      code: 'rate-limited',
      message:
        `${this.#limited} of ${this.#requests} requests were answered 429: the server limits the ` +
        'rate. Set --rpm or --tpm to its limits, or lower --concurrency',
    }
  }

  #idleClose(): Finding | undefined {
    if (this.#stale < 2 * ENOUGH || this.#stale < 0.05 * this.#requests) return undefined
    return {
      code: 'idle-close',
      message:
        `${this.#stale} requests met a connection that the server had just closed: it keeps idle ` +
        'connections for less than 4 s. They are sent again and cost nothing but time',
    }
  }

  #descriptors(failure: Failure): Finding | undefined {
    if (failure.code !== 'descriptors') return undefined
    return {
      code: 'descriptors',
      message:
        `too few file descriptors for ${this.#concurrency} open requests: going on with fewer of ` +
        'them. Raise the limit (ulimit -n, LimitNOFILE= of systemd) to ' +
        `${this.#concurrency + OTHER_DESCRIPTORS}, or lower --concurrency`,
    }
  }

  #queuedByOthers({ open, unstarted, longestWait }: Snapshot): Finding | undefined {
    if (open === 0 || unstarted < open || longestWait < QUEUED_BY_OTHERS) return undefined
    return {
      code: 'queued-by-others',
      message:
        `all ${open} open requests have waited for their first token, one for ` +
        `${Math.round(longestWait / 1000)} s: the server works for others, or is not ready ` +
        '(vllm:num_requests_waiting in its /metrics tells). They are not timed out before ' +
        '--first-token-timeout',
    }
  }

  #busy({ loopBusy, loopTime, uptime }: Snapshot): Finding | undefined {
    if (uptime - loopTime < START) return undefined
    this.#loopTime += loopTime
    this.#busyTime += loopBusy * loopTime
    if (this.#loopTime < BUSY_FOR) return undefined
    const share = this.#busyTime / this.#loopTime
    this.#loopTime = this.#busyTime = 0
    if (share < BUSY) return undefined
    return {
      code: 'client-busy',
      message:
        'this process uses a whole core: it is the bottleneck, not the server. Use two of them, ' +
        'each with half of the records',
    }
  }

  #slowOutput(): Finding | undefined {
    if (this.#slowPeriods < 2) return undefined
    return {
      code: 'slow-output',
      message:
        'answers wait seconds to be written: the disk, or the reader of our output, is the ' +
        'bottleneck, and the server waits for it. Write to a local file with -o, and process that',
    }
  }

  #isNew(code: string): boolean {
    if (this.#named.has(code)) return false
    this.#named.add(code)
    return true
  }
}
