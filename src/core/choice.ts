/** The names under which servers send reasoning: vLLM now, vLLM and SGLang before, DeepSpec. */
export const REASONING_NAMES = ['reasoning', 'reasoning_content', 'thinking'] as const

/** Members of a choice that are recorded beside the message. */
export const BESIDE = ['logprobs', 'token_ids', 'prompt_token_ids'] as const

/** One of the answers that a body holds, whole or a delta of it. */
export interface Choice {
  index?: unknown
  message?: Record<string, unknown> | null
  delta?: Record<string, unknown> | null
  text?: string | null
  finish_reason?: string | null
  logprobs?: unknown
  token_ids?: unknown
  prompt_token_ids?: unknown
}

/** A reply, or an event of one. */
export interface Body {
  choices?: unknown
  usage?: Record<string, unknown> | null
  model?: unknown
  error?: unknown
  object?: unknown
  message?: unknown
  prompt_token_ids?: unknown
}

/** The choice that counts of a body or an event: not all servers send them in their order. */
export function firstChoice({ choices }: Body): Choice | undefined {
  if (!Array.isArray(choices)) return undefined
  let first: Choice | undefined
  for (const choice of choices as (Choice | null)[]) {
    if (choice === null || typeof choice !== 'object') continue
    if (first === undefined || indexOf(choice) < indexOf(first)) first = choice
  }
  return first
}

export function indexOf({ index }: Choice): number {
  return typeof index === 'number' ? index : 0
}

/** Whether it says why it ends; some servers send an empty text until then. */
export function hasFinished(choice: Choice): choice is Choice & { finish_reason: string } {
  return typeof choice.finish_reason === 'string' && choice.finish_reason !== ''
}

/** The member of the delta whose text is all that an event brings; undefined where there is more. */
export function plainName(body: Body): string | undefined {
  if (!Array.isArray(body.choices) || body.choices.length !== 1) return undefined
  if (body.error || body.usage || body.prompt_token_ids) return undefined
  const [{ delta, ...choice }] = body.choices as [Choice]
  if (!delta || hasFinished(choice)) return undefined
  if (BESIDE.some((name) => choice[name] !== undefined && choice[name] !== null)) return undefined
  const [name, ...others] = Object.keys(delta)
  if (name === undefined || others.length > 0 || typeof delta[name] !== 'string') return undefined
  return name === 'content' || REASONING_NAMES.some((word) => word === name) ? name : undefined
}
