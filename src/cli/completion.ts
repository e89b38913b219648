import { usageError } from '../core/tool-error.ts'
import type { Command } from './command.ts'
import { type Option, optionName } from './option.ts'

/**
 * A completion script made from a command's options.
 *
 * @throws ToolError `usage` for a shell other than bash, zsh and fish
 */
export function completionScript(command: Command, shell: string): string {
  const options = Object.entries(command.options).map(([name, option]) => ({
    name: optionName(name),
    option,
  }))
  if (shell === 'bash') return bash(command.name, options)
  if (shell === 'zsh') return zsh(command.name, options)
  if (shell === 'fish') return fish(command.name, options)
  throw usageError(`--completion takes bash, zsh or fish, not '${shell}'`)
}

type Named = { name: string; option: Option<unknown> }

function bash(name: string, options: Named[]): string {
  const words = options.map((option) => option.name).join(' ')
  const shellName = name.replaceAll('-', '_')
  return `_${shellName}() {
  local word=\${COMP_WORDS[COMP_CWORD]}
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W '${words}' -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _${shellName} ${name}
`
}

function zsh(name: string, options: Named[]): string {
  const lines = options.map(({ name: long, option }) => {
    const what = option.describe.replace(/[[\]:'\\]/g, ' ')
    const value =
      option.metavar === undefined ? '' : `=:${option.metavar.replaceAll(':', ' ')}:_files`
    return `  '*${long}[${what}]${value}'`
  })
  return `#compdef ${name}\n_arguments -S \\\n${lines.join(' \\\n')} \\\n  '*:file:_files'\n`
}

function fish(name: string, options: Named[]): string {
  const lines = options.map(({ name: long, option }) => {
    const short = option.short ? ` -s ${option.short}` : ''
    const value = option.metavar === undefined ? '' : ' -r'
    return `complete -c ${name} -l ${long.slice(2)}${short}${value} -d '${option.describe.replace(/['\\]/g, ' ')}'`
  })
  return `${lines.join('\n')}\n`
}
