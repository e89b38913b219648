import { parseField } from '../../core/field.ts'
import { KeyRule } from '../../core/key.ts'
import { parseParameters } from '../../core/parameters.ts'
import type { RecordRules } from '../../core/record.ts'
import { usageError } from '../../core/tool-error.ts'
import type { FanoutOptions } from './options.ts'

/** Members of a request body that this command makes, and what to use for them. */
const MADE: Readonly<Record<string, string>> = {
  messages: 'the messages are those of the record',
  prompt: 'the prompt is that of the record (--prompt-field names another member)',
  input: 'what is asked is in the record (a batch line is sent as it stands)',
  stream: 'answers are streamed unless --no-stream is given',
  stream_options: 'answers are streamed with their usage unless --no-stream is given',
  model: 'use --model',
  n: 'use extract-prompts --samples',
}

/**
 * How records are read, from the options.
 *
 * @throws ToolError `usage` for --send of a member that the request has anyway
 */
export function recordRules(options: FanoutOptions): RecordRules {
  refuseMade('--send', options.send)
  return {
    key: new KeyRule(options.key),
    promptField: options.promptField === undefined ? undefined : parseField(options.promptField),
    send: options.send.map((name) => Buffer.from(name)),
  }
}

/**
 * The members of every request body, from the options.
 *
 * @throws ToolError `usage` for --n, for parameters that are no JSON, and for members that the
 *   request has anyway or that are given twice
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
  const given = parseParameters(options.param)
  refuseMade('--param', [...given.keys()])
  for (const [name, value] of given) {
    if (parameters.has(name)) {
      throw usageError(`--${name.replaceAll('_', '-')} and --param ${name} exclude each other`)
    }
    parameters.set(name, value)
  }
  return parameters
}

/** A second `messages` or `model` in a body would be asked for what the record does not say. */
function refuseMade(option: string, names: readonly string[]): void {
  const name = names.find((one) => Object.hasOwn(MADE, one))
  if (name !== undefined) throw usageError(`${option} ${name} cannot be: ${MADE[name]}`)
}
