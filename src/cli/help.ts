import yargs, { type Argv, type Options } from 'yargs'
import type { Command } from './command.ts'
import { type OptionTable, optionName } from './option.ts'

/** Help is laid out for at most this many columns. */
const WIDEST_HELP = 100

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
    .exitProcess(false)
    .help(false)
    .version(false)
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
