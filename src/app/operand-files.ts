import { ToolError } from '../core/tool-error.ts'
import { expandGlob } from '../files/glob.ts'
import { operandsOrStdin } from './inputs.ts'

/**
 * The files that operands name, quoted globs expanded; none means standard input.
 *
 * @throws ToolError where a glob matches nothing
 */
export async function operandFiles(operands: readonly string[]): Promise<string[]> {
  const files: string[] = []
  for (const operand of operandsOrStdin(operands)) {
    const found = operand === '-' ? [operand] : await expandGlob(operand)
    if (found.length === 0) {
      throw new ToolError('io', 'no file matches', { place: { file: operand } })
    }
    files.push(...found)
  }
  return files
}
