import { hashText, mix, uniform } from './random.ts'

/** What can go wrong with a request, other than an HTTP status; see `FAULT_NAMES` for each. */
export type FaultName = keyof typeof FAULT_NAMES

/**
 * The faults that have a name, and what they do on the wire. Middle is half of the answer's tokens;
 * of an answer that is not streamed, half of the body's bytes.
 */
export const FAULT_NAMES = {
  hang: 'accepts the request and never answers',
  stall: 'stops in the middle of the stream, or between headers and body, for ever',
  reset: 'resets the connection (RST) in the middle',
  cut: 'closes the connection (FIN) in the middle',
  garbage: 'status 200 and bytes that are neither JSON nor events',
  html: 'status 200 and an HTML page, as a captive portal or a login page',
  'html-502': 'status 502 and the HTML page of a proxy',
  'in-band-error': 'status 200, then an error object in the middle of the stream, then [DONE]',
  'no-done': 'a whole stream, but without [DONE]; no effect where nothing is streamed',
  'no-finish': 'a whole answer, but without finish_reason',
  empty: 'an answer without text, finish_reason stop',
  abort: 'half an answer, finish_reason abort (SGLang)',
  slow: 'one tenth of the pace',
  'no-choices': 'status 200 and an answer with no choices',
} as const

/** One fault to inject: a name or an HTTP status, and the share of requests it hits (0 to 1). */
export interface Fault {
  readonly name: FaultName | number
  readonly rate: number
}

export class FaultSpecError extends Error {
  constructor(spec: string, problem: string) {
    super(`fault '${spec}': ${problem}`)
    this.name = 'FaultSpecError'
  }
}

/**
 * Reads `NAME:RATE`, where NAME is one of `FAULT_NAMES` or an HTTP status from 400 to 599, and RATE
 * is `2%` or `0.02`.
 * @throws FaultSpecError
 */
export function parseFault(spec: string): Fault {
  const colon = spec.lastIndexOf(':')
  if (colon < 0) throw new FaultSpecError(spec, 'expected NAME:RATE, such as 503:2%')
  return {
    name: parseName(spec, spec.slice(0, colon)),
    rate: parseRate(spec, spec.slice(colon + 1)),
  }
}

function parseName(spec: string, name: string): FaultName | number {
  if (Object.hasOwn(FAULT_NAMES, name)) return name as FaultName
  if (/^[45]\d\d$/.test(name)) return Number(name)
  const known = Object.keys(FAULT_NAMES).join(', ')
  const problem = `unknown name '${name}'; known are the statuses 400 to 599 and ${known}`
  throw new FaultSpecError(spec, problem)
}

function parseRate(spec: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?|\.\d+)(%?)$/.exec(text)
  if (!match) throw new FaultSpecError(spec, `'${text}' is no rate; write 2% or 0.02`)
  const rate = Number(match[1]) / (match[2] === '%' ? 100 : 1)
  if (rate > 1) throw new FaultSpecError(spec, `a rate of ${text} is more than all requests`)
  return rate
}

/**
 * Reads several specifications.
 * @throws FaultSpecError also when together they would hit more than every request
 */
export function parseFaults(specs: readonly string[]): Fault[] {
  const faults = specs.map(parseFault)
  let total = 0
  for (const [index, fault] of faults.entries()) {
    total += fault.rate
    if (total > 1 + 1e-9) {
      throw new FaultSpecError(specs[index]!, 'the rates of all faults add up to more than 100%')
    }
  }
  return faults
}

/**
 * Decides which requests are hit. The draw depends on the seed, the prompt and how often this
 * server has seen that prompt: the order of arrival changes nothing, and a retry draws anew.
 */
export class FaultDraw {
  readonly #faults: readonly Fault[]
  readonly #seed: number
  /** Requests seen per prompt, by a 53-bit hash: a long run costs 16 bytes a prompt, not its text. */
  readonly #attempts = new Map<number, number>()

  constructor(faults: readonly Fault[], seed: number) {
    this.#faults = faults
    this.#seed = seed
  }

  /** The fault that hits the next request with this prompt, if any. */
  next(prompt: string): Fault | undefined {
    if (this.#faults.length === 0) return undefined
    const hash = hashText(prompt, this.#seed)
    const key = hash * 0x20_0000 + (hashText(prompt, ~this.#seed) >>> 11)
    const attempt = this.#attempts.get(key) ?? 0
    this.#attempts.set(key, attempt + 1)
    let point = uniform(mix(hash, this.#seed), attempt)
    for (const fault of this.#faults) {
      if (point < fault.rate) return fault
      point -= fault.rate
    }
    return undefined
  }
}
