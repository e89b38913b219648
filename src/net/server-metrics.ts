/** What the server says of its own queue. */
export interface ServerLoad {
  running: number
  waiting: number
  /** Share of the fullest KV cache in use, 0 to 1; 0 where it is not told. */
  kvUse: number
  /** Since the server's start; undefined where it is not told. */
  preemptions: number | undefined
}

/** vLLM's names, with and without the `_total` of counters, and its older one for the cache. */
const NAMES = {
  running: ['vllm:num_requests_running'],
  waiting: ['vllm:num_requests_waiting'],
  kvUse: ['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'],
  preemptions: ['vllm:num_preemptions_total', 'vllm:num_preemptions'],
} as const

/**
 * Reads vLLM's gauges from Prometheus text: requests summed over engines, the cache of the fullest.
 *
 * @param model whose gauges count where there are those of several
 * @returns undefined where the text does not tell how many requests run and wait
 */
export function parseServerLoad(told: string, model?: string): ServerLoad | undefined {
  const text = model === undefined ? told : linesOf(told, model)
  const kvUse = Math.max(0, ...(valuesOf(text, NAMES.kvUse) ?? []))
  const running = sumOf(text, NAMES.running)
  const waiting = sumOf(text, NAMES.waiting)
  if (running === undefined || waiting === undefined) return undefined
  return {
    running,
    waiting,
    kvUse: kvUse > 1 ? 0 : kvUse,
    preemptions: sumOf(text, NAMES.preemptions),
  }
}

/**
 * The model that the gauges are of, where they name models and ours is none of them.
 *
 * @returns undefined where they are, or may be, of ours
 */
export function foreignModel(text: string, model: string): string | undefined {
  const names = text.split('\n').flatMap((line) => modelOf(line) ?? [])
  return names.includes(model) ? undefined : names[0]
}

/** The lines that name this model, or none. */
function linesOf(text: string, model: string): string {
  const lines = text.split('\n')
  return lines.filter((line) => (modelOf(line) ?? model) === model).join('\n')
}

/** The model of a line of vLLM's. */
function modelOf(line: string): string | undefined {
  const [, name] = /^vllm:\w+\{[^}]*?\bmodel_name="((?:[^"\\]|\\.)*)"/.exec(line) ?? []
  return name?.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
}

function sumOf(text: string, names: readonly string[]): number | undefined {
  return valuesOf(text, names)?.reduce((sum, value) => sum + value, 0)
}

function valuesOf(text: string, names: readonly string[]): number[] | undefined {
  for (const name of names) {
    const lines = new RegExp(`^${name}(?:\\{[^}]*\\})?[ \\t]+([0-9.eE+-]+)`, 'gm')
    const values = [...text.matchAll(lines)].map(([, value]) => Number(value))
    const plausible = values.length > 0 && values.every((value) => value >= 0)
    if (plausible) return values
  }
  return undefined
}
