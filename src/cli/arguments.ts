import { usageError } from '../core/tool-error.ts'
import { type Option, type OptionTable, optionName } from './option.ts'

/** A command line taken apart: values per option in the order given, and what is no option. */
export interface Arguments {
  values: Map<string, string[]>
  operands: string[]
}

/**
 * Spells a command line in one way only, `--name=value` or `--name`, operands last behind `--`, by
 * the rules of getopt_long: options in any order, `--` ends them, `-qc5` is `-q -c 5`, a value that
 * begins with a dash is a value. yargs alone would read `-c5x` as three flags and `-i.bak` as an
 * object.
 *
 * @throws ToolError `usage` for an unknown option, a missing value or one too many
 */
export function canonicalArguments(argv: readonly string[], table: OptionTable): string[] {
  const byName = new Map(Object.entries(table).map(([name, option]) => [optionName(name), option]))
  const byLetter = new Map<string, string>()
  for (const [name, option] of byName) if (option.short) byLetter.set(option.short, name)
  const options: string[] = []
  const operands: string[] = []
  const rest = [...argv]

  const take = (name: string, option: Option<unknown>, attached: string | undefined): void => {
    if (option.metavar === undefined) {
      if (attached !== undefined) throw usageError(`option ${name} takes no value`)
      options.push(name)
      return
    }
    const value = attached ?? (option.valueOptional ? '' : rest.shift())
    if (value === undefined) throw usageError(`option ${name} needs a value (${option.metavar})`)
    options.push(`${name}=${value}`)
  }

  while (rest.length > 0) {
    const argument = rest.shift()!
    if (argument === '--') {
      operands.push(...rest.splice(0))
    } else if (argument.startsWith('--')) {
      const [name, ...attached] = argument.split('=')
      const option = byName.get(name!)
      if (option === undefined) throw unknown(name!, [...byName.keys()])
      take(name!, option, attached.length > 0 ? attached.join('=') : undefined)
    } else if (argument.startsWith('-') && argument !== '-') {
      let letters = argument.slice(1)
      while (letters !== '') {
        const name = byLetter.get(letters[0]!)
        if (name === undefined) throw unknown(`-${letters[0]}`, [])
        const option = byName.get(name)!
        const isFlag = option.metavar === undefined
        const attached = letters.slice(1)
        take(name, option, isFlag || attached === '' ? undefined : attached)
        letters = isFlag ? attached : ''
      }
    } else {
      operands.push(argument)
    }
  }
  return [...options, '--', ...operands]
}

function unknown(name: string, names: readonly string[]): Error {
  const near = names.filter((other) => other.startsWith(name) || name.startsWith(other))
  const hint = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : ''
  return usageError(`unknown option ${name}${hint}`)
}
