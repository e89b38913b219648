import type { Scheduler, SchedulerEvents } from './scheduler.ts'
import type { Sequence } from './sequence.ts'

/** Bucket limits in seconds, as in vllm/v1/metrics/loggers.py. */
const QUEUE_BUCKETS = [
  0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680,
]
const FIRST_TOKEN_BUCKETS = [
  0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80,
  160, 640, 2560,
]

/** Prometheus' histogram: how many observations are at most each limit, their number and sum. */
export class Histogram {
  readonly #limits: readonly number[]
  readonly #counts: number[]
  #sum = 0

  constructor(limits: readonly number[]) {
    this.#limits = [...limits, Number.POSITIVE_INFINITY]
    this.#counts = this.#limits.map(() => 0)
  }

  observe(value: number): void {
    const index = this.#limits.findIndex((limit) => value <= limit)
    this.#counts[index]!++
    this.#sum += value
  }

  lines(name: string, labels: string): string[] {
    let total = 0
    const buckets = this.#limits.map((limit, index) => {
      total += this.#counts[index]!
      const le = Number.isFinite(limit) ? decimal(limit) : '+Inf'
      return `${name}_bucket{${labels},le="${le}"} ${decimal(total)}`
    })
    const sum = `${name}_sum{${labels}} ${this.#sum}`
    return [...buckets, `${name}_count{${labels}} ${decimal(total)}`, sum]
  }
}

/** As Python prints floats, which is what prometheus_client does. */
function decimal(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value)
}

/** What vLLM counts by request rather than by step. */
export class RequestMetrics implements SchedulerEvents {
  readonly queueTime = new Histogram(QUEUE_BUCKETS)
  readonly timeToFirstToken = new Histogram(FIRST_TOKEN_BUCKETS)
  /** Requests by finish reason; vLLM calls all of them successes. */
  readonly ended: Record<string, number> = { stop: 0, length: 0, abort: 0, error: 0 }

  firstToken(sequence: Sequence): void {
    const { arrivedAt, scheduledAt, firstTokenAt } = sequence
    this.queueTime.observe((scheduledAt! - arrivedAt) / 1000)
    this.timeToFirstToken.observe((firstTokenAt! - arrivedAt) / 1000)
  }

  finished({ finishReason }: Sequence): void {
    this.#end(finishReason)
  }

  aborted(): void {
    this.#end('abort')
  }

  #end(reason: string): void {
    this.ended[reason] = (this.ended[reason] ?? 0) + 1
  }
}

/** `GET /metrics` in Prometheus' text format 0.0.4, with vLLM's names. */
export function renderMetrics(
  model: string,
  scheduler: Scheduler,
  requests: RequestMetrics,
): string {
  const labels = `engine="0",model_name="${model.replace(/[\\"\n]/g, escapeLabel)}"`
  const one = (name: string, type: string, help: string, value: number): string[] =>
    described(name, type, help, [`${name}{${labels}} ${decimal(value)}`])
  const histogram = (name: string, help: string, values: Histogram): string[] =>
    described(name, 'histogram', help, values.lines(name, labels))
  const success = Object.entries(requests.ended).map(
    ([reason, count]) =>
      `vllm:request_success_total{${labels},finished_reason="${reason}"} ${decimal(count)}`,
  )
  const lines = [
    one(
      'vllm:num_requests_running',
      'gauge',
      'Requests in model execution batches.',
      scheduler.running,
    ),
    one(
      'vllm:num_requests_waiting',
      'gauge',
      'Requests waiting to be processed.',
      scheduler.waiting,
    ),
    one(
      'vllm:kv_cache_usage_perc',
      'gauge',
      'KV-cache usage. 1 means 100 percent.',
      scheduler.kvCacheUsage,
    ),
    one('vllm:num_preemptions_total', 'counter', 'Preemptions.', scheduler.preemptions),
    one('vllm:prompt_tokens_total', 'counter', 'Prefill tokens processed.', scheduler.promptTokens),
    one(
      'vllm:generation_tokens_total',
      'counter',
      'Generation tokens processed.',
      scheduler.generatedTokens,
    ),
    described('vllm:request_success_total', 'counter', 'Finished requests.', success),
    histogram('vllm:request_queue_time_seconds', 'Time spent waiting.', requests.queueTime),
    histogram(
      'vllm:time_to_first_token_seconds',
      'Time to first token.',
      requests.timeToFirstToken,
    ),
  ]
  return `${lines.flat().join('\n')}\n`
}

function described(name: string, type: string, help: string, samples: string[]): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...samples]
}

function escapeLabel(character: string): string {
  return character === '\n' ? '\\n' : `\\${character}`
}
