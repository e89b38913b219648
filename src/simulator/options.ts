import { type Fault, parseFaults } from './faults.ts'
import { type Outage, parseOutages } from './outages.ts'
import { SERVER_PROFILES } from './profiles.ts'

export type ReasoningField = 'reasoning' | 'reasoning_content' | 'both'

/** Everything `startSimulator` takes; all of it is optional. Durations are server time. */
export interface SimulatorOptions {
  /** Name of a server in `SERVER_PROFILES`, whose options count where they are not given here. */
  readonly profile?: string
  /** 0, the default, takes any free port. */
  readonly port?: number
  /** Address to listen on; 127.0.0.1. */
  readonly host?: string
  /** Name of the one model served; `simulated`. */
  readonly model?: string
  /** Required as `Authorization: Bearer` under /v1 when given. */
  readonly apiKey?: string
  /** How many times faster than the wall the server's clock runs; 1. */
  readonly speed?: number
  /** Seed of lengths, texts and request ids; 0. */
  readonly seed?: number

  /** Sequences that run at once at most, `--max-num-seqs`; 256. */
  readonly maxNumSeqs?: number
  /** KV cache in tokens; 0, the default, is unlimited. */
  readonly kvCacheTokens?: number
  /** Prompt tokens per second, over all sequences; 20,000. */
  readonly prefillTokensPerSecond?: number
  /** Prompt tokens computed in one step at most; 8,192 (vLLM's `--max-num-batched-tokens`). */
  readonly prefillChunk?: number
  /** Aggregate decode rate of an infinite batch; 1,000, about a 1T-parameter model on one node. */
  readonly peakTokensPerSecond?: number
  /** The batch that reaches half of that rate; 32. 0: every batch has the full rate. */
  readonly halfBatch?: number
  /** Accept `priority` in requests, as with vLLM's `--scheduling-policy priority`; false. */
  readonly priorityScheduling?: boolean
  /** Prompt and answer together, in tokens; 32,768, or the KV cache where that is smaller. */
  readonly maxModelLen?: number

  /** Mean answer, reasoning included, before it is cut at `maxTokens`; 1,263. */
  readonly meanTokens?: number
  /** Longest answer, for requests that set no limit or a higher one; 8,000. */
  readonly maxTokens?: number
  /** Standard deviation of the logarithm of the length; 0.9. 0: every answer has `meanTokens`. */
  readonly lengthSigma?: number
  /** Mean share of reasoning in the tokens of a chat answer, 0 to 1; 0.4. 0: no reasoning at all. */
  readonly reasoningShare?: number
  /** Name of the reasoning member; `reasoning`, as vLLM has called it since November 2025. */
  readonly reasoningField?: ReasoningField

  /** Idle connections are closed after this long; 5,000, as uvicorn does under vLLM. 0: never. */
  readonly keepAliveMs?: number
  /** Silent streams get a comment line this often, `--sse-keep-alive-interval`; 0, the default: never. */
  readonly sseKeepAliveMs?: number
  /** Faults such as `503:2%`; see `parseFault`. */
  readonly faults?: readonly string[]
  /** Seed of the draws that decide which requests are hit; 0. */
  readonly faultSeed?: number
  /** Outages such as `30s+10s`; see `parseOutage`. */
  readonly outages?: readonly string[]
}

/** Options as a command line gives them: undefined is not given. */
export type GivenOptions = {
  readonly [K in keyof SimulatorOptions]: SimulatorOptions[K] | undefined
}

/** The options with defaults filled in and specifications parsed. */
export type Settings = Required<
  Omit<SimulatorOptions, 'profile' | 'apiKey' | 'faults' | 'outages'>
> & {
  readonly apiKey: string | undefined
  readonly faults: readonly Fault[]
  readonly outages: readonly Outage[]
}

/** What is not given is this. */
export const SIMULATOR_DEFAULTS = {
  port: 0,
  host: '127.0.0.1',
  model: 'simulated',
  speed: 1,
  seed: 0,
  maxNumSeqs: 256,
  kvCacheTokens: 0,
  prefillTokensPerSecond: 20_000,
  prefillChunk: 8_192,
  peakTokensPerSecond: 1_000,
  halfBatch: 32,
  priorityScheduling: false,
  maxModelLen: 32_768,
  meanTokens: 1_263,
  maxTokens: 8_000,
  lengthSigma: 0.9,
  reasoningShare: 0.4,
  reasoningField: 'reasoning',
  keepAliveMs: 5_000,
  sseKeepAliveMs: 0,
  faultSeed: 0,
} as const

/** An option with a value that makes no sense; `option` is its name in `SimulatorOptions`. */
export class OptionError extends Error {
  readonly option: keyof SimulatorOptions

  constructor(option: keyof SimulatorOptions, expected: string, value: unknown) {
    super(`${option} must be ${expected}, got ${String(value)}`)
    this.name = 'OptionError'
    this.option = option
  }
}

type NumericOption = {
  [K in keyof Settings]: Settings[K] extends number ? K : never
}[keyof Settings]

interface Range {
  readonly expected: string
  readonly holds: (value: number) => boolean
}

const POSITIVE: Range = { expected: 'a positive number', holds: (n) => n > 0 }
const POSITIVE_FINITE: Range = {
  expected: 'a positive number',
  holds: (n) => n > 0 && Number.isFinite(n),
}
const NOT_NEGATIVE: Range = {
  expected: 'a number of at least 0',
  holds: (n) => n >= 0 && Number.isFinite(n),
}
const COUNT: Range = {
  expected: 'a positive integer',
  holds: (n) => n >= 1 && Number.isSafeInteger(n),
}
const SIZE: Range = {
  expected: 'an integer of at least 0',
  holds: (n) => n >= 0 && Number.isSafeInteger(n),
}
const SHARE: Range = { expected: 'between 0 and 1', holds: (n) => n >= 0 && n <= 1 }
const PORT: Range = {
  expected: 'an integer between 0 and 65535',
  holds: (n) => n >= 0 && n <= 65_535 && Number.isInteger(n),
}

const RANGES: Record<NumericOption, Range> = {
  port: PORT,
  speed: POSITIVE_FINITE,
  seed: SIZE,
  maxNumSeqs: COUNT,
  kvCacheTokens: SIZE,
  prefillTokensPerSecond: POSITIVE,
  prefillChunk: COUNT,
  peakTokensPerSecond: POSITIVE_FINITE,
  halfBatch: NOT_NEGATIVE,
  maxModelLen: COUNT,
  meanTokens: POSITIVE_FINITE,
  maxTokens: COUNT,
  lengthSigma: NOT_NEGATIVE,
  reasoningShare: SHARE,
  keepAliveMs: NOT_NEGATIVE,
  sseKeepAliveMs: NOT_NEGATIVE,
  faultSeed: SIZE,
}

const REASONING_FIELDS: readonly string[] = ['reasoning', 'reasoning_content', 'both']

/**
 * Fills in defaults and checks everything.
 * @throws OptionError naming the option that is out of range
 * @throws FaultSpecError, OutageSpecError for a specification that cannot be read
 */
export function resolveOptions(options: GivenOptions): Settings {
  const { profile, apiKey, faults = [], outages = [], ...given } = options
  const settings: Settings = {
    ...SIMULATOR_DEFAULTS,
    ...profileOptions(profile),
    ...withoutUndefined(given),
    apiKey,
    faults: parseFaults(faults),
    outages: parseOutages(outages),
  }
  for (const [name, range] of Object.entries(RANGES) as [NumericOption, Range][]) {
    const value: unknown = settings[name]
    if (typeof value !== 'number' || !range.holds(value)) {
      throw new OptionError(name, range.expected, value)
    }
  }
  if (!REASONING_FIELDS.includes(settings.reasoningField)) {
    throw new OptionError('reasoningField', REASONING_FIELDS.join(', '), settings.reasoningField)
  }
  if (settings.model === '') throw new OptionError('model', 'a name', "''")
  if (settings.kvCacheTokens === 0) return settings
  return { ...settings, maxModelLen: Math.min(settings.maxModelLen, settings.kvCacheTokens) }
}

function profileOptions(name: string | undefined): SimulatorOptions {
  if (name === undefined) return {}
  if (!Object.hasOwn(SERVER_PROFILES, name)) {
    const names = Object.keys(SERVER_PROFILES).join(', ')
    throw new OptionError('profile', `one of ${names}`, `'${name}'`)
  }
  return SERVER_PROFILES[name]!.options
}

/** A member given as `undefined` counts as not given. */
function withoutUndefined(options: GivenOptions): SimulatorOptions {
  const entries = Object.entries(options).filter(([, value]) => value !== undefined)
  return Object.fromEntries(entries)
}
