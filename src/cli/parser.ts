import yargs, { type Argv, type Options } from 'yargs'
import { usageError } from '../core/tool-error.ts'
import { canonicalArguments } from './arguments.ts'
import type { Command } from './command.ts'
import { type OptionTable, type OptionValues, optionName } from './option.ts'

/** Help is laid out for at most this many columns. */
const WIDEST_HELP = 100

/**
 * Reads a command line by a command's table of options.
 *
 * @throws ToolError `usage` where it is wrong
 */
export function parseArguments<Table extends OptionTable>(
  command: Command<Table>,
  argv: readonly string[],
): { options: OptionValues<Table>; operands: string[] } {
  const parsed = parser(command)
    .strict()
    .parseSync(canonicalArguments(argv, command.options), {}, () => {})
  const options: Record<string, unknown> = {}
  for (const [name, option] of Object.entries(command.options)) {
    const value = parsed[optionName(name).slice(2)]
    const given = value === undefined ? [] : Array.isArray(value) ? value : [value]
    options[name] = option.read(given.map(String), optionName(name))
  }
  return { options: options as OptionValues<Table>, operands: parsed._.map(String) }
}

/** The help text: what it is, examples first, then the options by group. */
export async function helpText(command: Command, columns: number): Promise<string> {
  const options = await parser(command).wrap(Math.min(columns, WIDEST_HELP)).getHelp()
  // Every option says what it takes; yargs' word for its type says it again.
  const text = options.replaceAll(/ *\[(?:string|boolean|array)\]/g, '').replaceAll(/^ +\n/gm, '')
  const parts = [introduction(command), text.trim(), command.notes?.trim()]
  return parts.filter((part) => part).join('\n\n')
}

function parser(command: Command): Argv {
  const instance = yargs([])
    .scriptName(command.name)
    .usage('')
    .parserConfiguration({
      'boolean-negation': false,
      'dot-notation': false,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'populate--': false,
      'short-option-groups': false,
    })
    .exitProcess(false)
    .help(false)
    .version(false)
    .fail((message, error) => {
      throw error ?? usageError(message)
    })
  for (const [name, option] of Object.entries(command.options)) {
    instance.option(optionName(name).slice(2), yargsOption(option))
  }
  return instance
}

function yargsOption(option: OptionTable[string]): Options {
  const value = option.metavar === undefined ? '' : `<${option.metavar}> `
  const suffix = option.defaultText === undefined ? '' : ` [default: ${option.defaultText}]`
  return {
    alias: option.short ? [option.short] : [],
    group: `${option.group}:`,
    describe: value + option.describe + suffix,
    hidden: option.hidden ?? false,
    type: option.metavar === undefined ? 'boolean' : 'string',
    requiresArg: false,
  }
}

function introduction(command: Command): string {
  const examples = command.examples.map((example) => `  ${example}`).join('\n')
  return `${command.name}: ${command.summary}\n\nUsage: ${command.usage}\n\nExamples:\n${examples}`
}
