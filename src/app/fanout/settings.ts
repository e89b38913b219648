import { parseField } from '../../core/field.ts'
import { KeyRule } from '../../core/key.ts'
import { parseParameters } from '../../core/parameters.ts'
import type { RecordRules } from '../../core/record.ts'
import { usageError } from '../../core/tool-error.ts'
import type { FanoutOptions } from './options.ts'

/** How records are read, from the options. */
export function recordRules(options: FanoutOptions): RecordRules {
  return {
    key: new KeyRule(options.key),
    promptField: options.promptField === undefined ? undefined : parseField(options.promptField),
    send: options.send.map((name) => Buffer.from(name)),
  }
}

/**
 * The members of every request body, from the options; `--param` wins over the options of its own.
 *
 * @throws ToolError `usage` for --n and for parameters that are no JSON
 */
export function requestParameters(options: FanoutOptions): Map<string, string> {
  if (options.n !== undefined) {
    throw usageError(
      '--n is not for here: make several records of each with extract-prompts --samples',
    )
  }
  const own = {
    max_tokens: options.maxTokens,
    temperature: options.temperature,
    top_p: options.topP,
    seed: options.seed,
  }
  const parameters = new Map<string, string>()
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined) parameters.set(name, String(value))
  }
  if (options.returnTokenIds) parameters.set('return_token_ids', 'true')
  for (const [name, value] of parseParameters(options.param)) parameters.set(name, value)
  if (parameters.has('n')) throw usageError('--param n: use extract-prompts --samples instead')
  return parameters
}
