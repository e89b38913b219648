/** Bytes of text that a token stands for, about: what OpenAI's guide gives for English. */
const BYTES_OF_ONE = 4

/** Members of requests and answers whose texts are no text of a conversation. */
const LABELS = new Set(['id', 'type', 'role', 'index', 'finish_reason', 'logprobs', 'url', 'data'])

/** Members of a request body that hold what is asked. */
const ASKS = ['messages', 'prompt', 'input', 'tools'] as const

/** About how many tokens a request asks with: ids of tokens count as they are. */
export function promptTokens(body: string): number {
  const request = JSON.parse(body) as Record<string, unknown>
  return ASKS.reduce((tokens, name) => tokens + tokensOfValue(request[name]), 0)
}

/** About how many tokens the texts in a value make, whatever it is. */
export function tokensOfValue(value: unknown): number {
  if (typeof value === 'string') return Math.ceil(Buffer.byteLength(value) / BYTES_OF_ONE)
  if (typeof value === 'number') return 1
  if (typeof value !== 'object' || value === null) return 0
  let tokens = 0
  for (const [name, inner] of Object.entries(value)) {
    if (Array.isArray(value) || !LABELS.has(name)) tokens += tokensOfValue(inner)
  }
  return tokens
}
