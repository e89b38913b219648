import { EXPORT_FORMS, FORMS, type FormName } from '../../core/export-form.ts'
import type { MessageStyle } from '../../core/message-writer.ts'
import { usageError } from '../../core/tool-error.ts'
import type { ExportOptions } from './options.ts'

/** What the options come to. */
export interface ExportSettings {
  form: FormName
  style: MessageStyle
  /** The share of the records that is for training; undefined without --split. */
  trainShare: number | undefined
}

/**
 * Checks the options against one another.
 *
 * @throws ToolError `usage`
 */
export function exportSettings(options: ExportOptions): ExportSettings {
  const { to, output, split, seed, reasoningTurns, tokenIds } = options
  if (to === undefined) throw usageError(`say what to write with --to: ${EXPORT_FORMS.join(', ')}`)
  const form = EXPORT_FORMS.find((name) => name === to)
  if (form === undefined) {
    throw usageError(`--to takes one of ${EXPORT_FORMS.join(', ')}, not '${to}'`)
  }
  if (form === 'parquet' && output === undefined) {
    throw usageError('--to parquet needs a file to write: -o FILE')
  }
  if (split !== undefined && output === undefined) {
    throw usageError(
      '--split needs the files to write: -o data.jsonl makes data.train.jsonl and data.eval.jsonl',
    )
  }
  if (seed !== undefined && split === undefined) throw usageError('--seed is for --split')
  if (reasoningTurns && !FORMS[form].byTurns) {
    throw usageError(`--reasoning-turns makes rows of turns, which --to ${form} does not have`)
  }
  if (tokenIds === 'use' && form !== 'speculators') {
    throw usageError('--token-ids use is for --to speculators')
  }
  return { form, style: styleOf(form, options), trainShare: trainShare(split) }
}

function styleOf(form: FormName, { reasoning, thinkTags }: ExportOptions): MessageStyle {
  if (form === 'alpaca' && reasoning === 'keep') {
    throw usageError('--to alpaca has no place for reasoning: use --reasoning drop or inline')
  }
  const otherwise = form === 'alpaca' ? 'drop' : 'keep'
  const { reasoningName } = FORMS[form]
  return {
    reasoning: reasoning === 'default' ? otherwise : reasoning,
    reasoningName,
    thinkTags: tagsOf(thinkTags),
  }
}

/** `OPEN,CLOSE`; `\n` stands for a line feed. */
function tagsOf(text: string): readonly [string, string] {
  const [open, close, ...more] = text.replaceAll('\\n', '\n').split(',')
  if (!open || !close || more.length > 0) {
    throw usageError(`--think-tags takes OPEN,CLOSE, such as <think>,</think>, not '${text}'`)
  }
  return [open, close]
}

function trainShare(split: string | undefined): number | undefined {
  if (split === undefined) return undefined
  const [, train, evaluation] = /^(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)$/.exec(split) ?? []
  const parts = [Number(train), Number(evaluation)] as const
  const sum = parts[0] + parts[1]
  if (!(sum > 0)) throw usageError(`--split takes TRAIN:EVAL, such as 95:5, not '${split}'`)
  return parts[0] / sum
}
