import type { Clock } from './clock.ts'

/** `down`: the process is killed; `sick`: the engine is dead, and the server answers 503. */
export type OutageKind = 'down' | 'sick'

/** One outage; times are milliseconds of server time, `startMs` since the server started. */
export interface Outage {
  readonly kind: OutageKind
  readonly startMs: number
  readonly durationMs: number
}

export class OutageSpecError extends Error {
  constructor(spec: string, problem: string) {
    super(`outage '${spec}': ${problem}`)
    this.name = 'OutageSpecError'
  }
}

const UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 }

/**
 * Reads `DURATION+START`: `30s+10s` is an outage of 30 s that begins 10 s after the start.
 * `503:30s+10s` is a sick server instead of a dead one. A bare number is seconds.
 * @throws OutageSpecError
 */
export function parseOutage(spec: string): Outage {
  const match = /^(503:)?([^+]*)\+([^+]*)$/.exec(spec)
  if (!match) throw new OutageSpecError(spec, 'expected DURATION+START, such as 30s+10s')
  const durationMs = parseDuration(spec, match[2]!)
  if (durationMs === 0) throw new OutageSpecError(spec, 'lasts no time')
  const startMs = parseDuration(spec, match[3]!)
  return { kind: match[1] ? 'sick' : 'down', startMs, durationMs }
}

function parseDuration(spec: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h)?$/.exec(text)
  if (!match) throw new OutageSpecError(spec, `'${text}' is no duration; write 30s, 10m or 1500ms`)
  return Number(match[1]) * UNITS[match[2] ?? 's']!
}

/**
 * Reads several specifications; the result is in the order of time.
 * @throws OutageSpecError also for two that overlap
 */
export function parseOutages(specs: readonly string[]): Outage[] {
  const outages = specs.map((spec) => ({ spec, ...parseOutage(spec) }))
  outages.sort((a, b) => a.startMs - b.startMs)
  let freeFrom = 0
  for (const { spec, startMs, durationMs } of outages) {
    if (startMs < freeFrom) throw new OutageSpecError(spec, 'overlaps with another outage')
    freeFrom = startMs + durationMs
  }
  return outages.map(({ kind, startMs, durationMs }) => ({ kind, startMs, durationMs }))
}

/** setTimeout takes 31 bits of milliseconds; what is further away is waited for in pieces. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

/**
 * Calls `begin` and `end` for each outage in turn, waiting for what they return.
 * @returns a function that stops it; nothing is called afterwards
 */
export function runOutages(
  outages: readonly Outage[],
  clock: Clock,
  begin: (kind: OutageKind) => void | Promise<void>,
  end: (kind: OutageKind) => void | Promise<void>,
): () => void {
  const edges = outages.flatMap(({ kind, startMs, durationMs }) => [
    { at: startMs, run: () => begin(kind) },
    { at: startMs + durationMs, run: () => end(kind) },
  ])
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const step = async (): Promise<void> => {
    while (!stopped && edges.length > 0) {
      const wait = clock.toWall(edges[0]!.at - clock.now())
      if (wait > 0) {
        timer = setTimeout(() => void step(), Math.min(Math.ceil(wait), LONGEST_TIMER_MS))
        return
      }
      await edges.shift()!.run()
    }
  }
  void step()
  return () => {
    stopped = true
    clearTimeout(timer)
  }
}
