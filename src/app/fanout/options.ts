import type { Endpoint } from '../../core/request.ts'
import type { ShardChoice } from '../shard.ts'

/** What the options of fanout-complete become; durations in milliseconds of server time. */
export interface FanoutOptions extends ShardChoice {
  url: string[]
  model: string | undefined
  apiKeyFile: string | undefined
  header: string[]
  headerFile: string | undefined
  caFile: string | undefined

  endpoint: Endpoint
  promptField: string | undefined
  system: string | undefined
  send: string[]
  historyReasoning: 'drop' | 'keep'
  returnTokenIds: boolean
  key: string | undefined

  maxTokens: number | undefined
  temperature: number | undefined
  topP: number | undefined
  seed: number | undefined
  param: string[]
  n: string | undefined
  noStream: boolean

  concurrency: number | 'auto'
  maxConcurrency: number
  rpm: number | undefined
  tpm: number | undefined
  retries: number
  retryBudget: number
  maxAnswer: number
  connectTimeout: number
  firstTokenTimeout: number
  idleTimeout: number
  timeout: number
  maxOutage: number
  drain: number
  drainOn: 'none' | 'USR1' | 'USR2'
  clockSpeed: number

  output: string | undefined
  resume: boolean
  completed: string[]
  takeLock: boolean
  overwrite: boolean
  onChanged: 'stop' | 'keep' | 'redo'
  sync: number
  failures: string | undefined
  keepOrder: boolean
  onLength: 'keep' | 'fail'
  haltOnFailures: string | undefined

  progressEvery: number
  total: number | undefined
  readSize: number | undefined
  stats: string | undefined
  trace: string | undefined
  quiet: boolean
}

/** Requests that may be open at one time. */
export function openAtMost({ concurrency, maxConcurrency, url }: FanoutOptions): number {
  return concurrency === 'auto' ? maxConcurrency * Math.max(1, url.length) : concurrency
}
