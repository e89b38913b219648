import type { TurnMode } from '../../core/prompt-record.ts'
import type { ShardChoice } from '../shard.ts'

/** The options of extract-prompts. */
export interface ExtractOptions extends ShardChoice {
  turns: TurnMode
  promptField: string | undefined
  key: string | undefined
  pathIds: boolean
  keep: string[]
  skipEmpty: boolean
  maxPromptChars: number | undefined
  sample: number | undefined
  seed: string | undefined
  shuffle: string | undefined
  skip: number
  limit: number | undefined
  samples: number
  rejects: string | undefined
  quiet: boolean
  verbose: boolean
  readSize: number | undefined
  stats: string | undefined
}
