import { usageError } from './tool-error.ts'

type Tree = Map<string, string | Tree>

/**
 * Members of the request body from options: `name=JSON`, dots in a name reach inside. The text of
 * numbers stays as it was written.
 *
 * @returns JSON text by top-level name
 * @throws ToolError `usage` where a value is no JSON or a name is given as a value and as an object
 */
export function parseParameters(given: readonly string[]): Map<string, string> {
  const tree: Tree = new Map()
  for (const parameter of given) {
    const [, name, value] = /^([^=]+)=(.*)$/s.exec(parameter) ?? []
    if (name === undefined || value === undefined) {
      throw usageError(`--param takes KEY=JSON, not '${parameter}'`)
    }
    put(tree, name.split('.'), jsonText(name, value))
  }
  return new Map([...tree].map(([name, value]) => [name, render(value)]))
}

function jsonText(name: string, value: string): string {
  try {
    JSON.parse(value)
    return value
  } catch {
    throw usageError(`--param ${name}: '${value}' is no JSON (a text needs quotes: '"${value}"')`)
  }
}

function put(tree: Tree, [step, ...rest]: string[], value: string): void {
  if (rest.length === 0) {
    tree.set(step!, value)
    return
  }
  const inner = tree.get(step!) ?? new Map()
  if (typeof inner === 'string')
    throw usageError(`--param ${step} is given as a value and as an object`)
  tree.set(step!, inner)
  put(inner, rest, value)
}

function render(value: string | Tree): string {
  if (typeof value === 'string') return value
  const members = [...value].map(([name, inner]) => `${JSON.stringify(name)}:${render(inner)}`)
  return `{${members.join(',')}}`
}
