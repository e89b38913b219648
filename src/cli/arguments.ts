import { usageError } from '../core/tool-error.ts'
import { type Option, type OptionTable, type OptionValues, optionName } from './option.ts'

/** A command line taken apart: the values given per option, in order, and what is no option. */
export interface Arguments {
  /** By the option's name in code; a flag has an empty text for each time that it was given. */
  values: Map<string, string[]>
  operands: string[]
}

/**
 * Reads a command line by the rules of getopt_long: options in any order, `--` ends them, `-qc5` is
 * `-q -c 5`, a value may begin with a dash. yargs reads `-c5x` as three flags and `-i.bak` as an
 * object, and costs 80 ms at every start: it lays out the help text, and nothing else.
 *
 * @throws ToolError `usage` for an unknown option, a missing value or one too many
 */
export function takeApart(argv: readonly string[], table: OptionTable): Arguments {
  const byLongName = new Map(Object.keys(table).map((name) => [optionName(name), name]))
  const offered = Object.keys(table).filter((name) => table[name]!.hidden !== true)
  const byLetter = new Map<string, string>()
  for (const [name, { short }] of Object.entries(table)) if (short) byLetter.set(short, name)
  const values = new Map<string, string[]>()
  const operands: string[] = []
  const rest = [...argv]

  const take = (name: string, attached: string | undefined): void => {
    const value = takenValue(name, table[name]!, attached, rest)
    values.set(name, [...(values.get(name) ?? []), value])
  }
  const takeLetters = (letters: string): void => {
    const name = byLetter.get(letters[0]!)
    if (name === undefined) throw unknown(`-${letters[0]}`, [])
    const attached = letters.slice(1)
    const isFlag = table[name]!.metavar === undefined
    take(name, isFlag || attached === '' ? undefined : attached)
    if (isFlag && attached !== '') takeLetters(attached)
  }

  while (rest.length > 0) {
    const argument = rest.shift()!
    if (argument === '--') operands.push(...rest.splice(0))
    else if (argument.startsWith('--')) {
      const equals = argument.indexOf('=')
      const longName = equals < 0 ? argument : argument.slice(0, equals)
      const name = byLongName.get(longName)
      if (name === undefined) throw unknown(longName, offered.map(optionName))
      take(name, equals < 0 ? undefined : argument.slice(equals + 1))
    } else if (argument.startsWith('-') && argument !== '-') takeLetters(argument.slice(1))
    else operands.push(argument)
  }
  return { values, operands }
}

/** The value of an option, attached to it or the next argument, which is then taken from `rest`. */
function takenValue(
  name: string,
  option: Option<unknown>,
  attached: string | undefined,
  rest: string[],
): string {
  if (option.metavar === undefined) {
    if (attached !== undefined) throw usageError(`option ${optionName(name)} takes no value`)
    return ''
  }
  const value = attached ?? (option.valueOptional ? '' : rest.shift())
  if (value === undefined) {
    throw usageError(`option ${optionName(name)} needs a value (${option.metavar})`)
  }
  return value
}

/**
 * Reads a command line into the values of a command's options.
 *
 * @throws ToolError `usage` where it is wrong
 */
export function parseArguments<Table extends OptionTable>(
  table: Table,
  argv: readonly string[],
): { options: OptionValues<Table>; operands: string[] } {
  const { values, operands } = takeApart(argv, table)
  const options: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(table)) {
    options[name] = option.read(values.get(name) ?? [], optionName(name))
  }
  return { options: options as OptionValues<Table>, operands }
}

function unknown(name: string, names: readonly string[]): Error {
  const near = names.filter((other) => other.startsWith(name) || name.startsWith(other))
  const hint = near.length > 0 ? `; did you mean ${near.join(' or ')}?` : ''
  return usageError(`unknown option ${name}${hint}`)
}
