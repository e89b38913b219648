/** What peers are told: where to send, how many requests, and how many at a time. */
export interface PeerArguments {
  origin: string
  count: number
  concurrency: number
}

/** Reads the end of a peer's command line: URL COUNT CONCURRENCY. */
export function peerArguments(args: readonly string[]): PeerArguments {
  const [url = '', count = '', concurrency = ''] = args.slice(-3)
  return {
    origin: new URL(url).origin,
    count: Number(count),
    concurrency: Number(concurrency),
  }
}

/** Hands numbers below `count` to so many workers, each taking the next one when it has done one. */
export async function workers(
  { count, concurrency }: PeerArguments,
  work: (id: number, worker: number) => Promise<void>,
): Promise<void> {
  let next = 0
  const worker = async (index: number): Promise<void> => {
    while (next < count) await work(next++, index)
  }
  await Promise.all(Array.from({ length: concurrency }, (_, index) => worker(index)))
}

/** The body that fanout-complete sends for a record of the same prompt. */
export function requestBody(id: number, stream: boolean): string {
  const messages = [{ role: 'user', content: `What is ${10_000 + (id % 90_000)}+2345?` }]
  const streaming = stream ? { stream: true, stream_options: { include_usage: true } } : {}
  return JSON.stringify({ model: 'm', messages, ...streaming })
}

export const CHAT_PATH = '/v1/chat/completions'
export const JSON_HEADERS = { 'content-type': 'application/json' }
