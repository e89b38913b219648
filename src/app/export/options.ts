import type { ReasoningMode } from '../../core/message-writer.ts'

/** Whether pre-tokenised rows are written; words of --token-ids. */
export const TOKEN_MODES = ['auto', 'use', 'drop'] as const

/** The options of export-conversations. */
export interface ExportOptions {
  to: string | undefined
  only: string[]
  minChars: number
  keepDuplicates: boolean
  reasoning: ReasoningMode | 'default'
  thinkTags: string
  reasoningTurns: boolean
  tokenIds: (typeof TOKEN_MODES)[number]
  output: string | undefined
  split: string | undefined
  seed: string | undefined
  readSize: number | undefined
  stats: string | undefined
}
