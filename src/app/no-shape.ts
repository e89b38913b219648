import { ToolError } from '../core/tool-error.ts'

const SHOWN = 20

/** The error for a file in which no row has a field that holds a prompt. */
export function noShape(
  file: string,
  looked: readonly string[],
  found: readonly string[],
  what: 'fields' | 'columns',
): ToolError {
  const has = hasText(found, what)
  const way = found.length > 0 ? '; name the one that holds the prompt with --prompt-field' : ''
  const message =
    looked.length === 1
      ? `no row has the field '${looked[0]}' of --prompt-field: ${has}`
      : `none of the known shapes: ${has}${way}`
  return new ToolError('no-shape', message, { place: { file } })
}

/** The error for a file in which no record is one of answers. */
export function noAnswers(file: string, found: readonly string[]): ToolError {
  const way =
    found.length > 0
      ? "; rename the one that holds the turns, as in jq -c '.conversations = .FIELD'"
      : ''
  const message = `none of the known shapes: ${hasText(found, 'fields')}${way}`
  return new ToolError('no-shape', message, { place: { file } })
}

/** The error for a file in which no record is what a report is made of. */
export function noRunRecords(file: string, found: readonly string[], what: string): ToolError {
  const message = `${what} in it: ${hasText(found, 'fields')}`
  return new ToolError('no-shape', message, { place: { file } })
}

function hasText(found: readonly string[], what: string): string {
  const shown = found.slice(0, SHOWN).map((name) => `'${name}'`)
  if (found.length > SHOWN) shown.push(`${found.length - SHOWN} more`)
  return found.length > 0 ? `it has the ${what} ${shown.join(', ')}` : `its rows have no ${what}`
}
