import { skipBlank } from './conversation.ts'
import { type Field, findField, type ValueRange } from './field.ts'
import { type JsonScanner, MEMBER_STRIDE } from './json-scan.ts'
import { KEY_FIELDS, scalarKey } from './key.ts'
import { MemberFinder } from './member-finder.ts'
import { RowProblem } from './row-problem.ts'

/** The fields that hold what is asked, the first one that a row has counts. */
export const PROMPT_FIELDS = [
  'messages',
  'conversations',
  'conversation',
  'turns',
  'instruction',
  'question',
  'prompt',
  'data',
] as const

/** Of these, fields that hold turns and never a text. */
const TURN_FIELDS: ReadonlySet<string> = new Set([
  'messages',
  'conversations',
  'conversation',
  'turns',
  'data',
])

/** Fields that hold a system message beside the prompt. */
export const SYSTEM_FIELDS = ['system', 'system_prompt'] as const

const FINDER_NAMES = [...PROMPT_FIELDS, ...SYSTEM_FIELDS, 'input', ...KEY_FIELDS] as const
const INSTRUCTION = FINDER_NAMES.indexOf('instruction')
const INPUT = FINDER_NAMES.indexOf('input')
const KEYS = INPUT + 1
const SYSTEM = FINDER_NAMES.indexOf('system')

/** How a row asks, as byte ranges. */
export interface Prompt {
  /**
   * A conversation of turns; user turns without answers; one text; one text with an input (Alpaca);
   * token ids.
   */
  shape: 'conversation' | 'turns' | 'text' | 'alpaca' | 'tokens'
  value: ValueRange
  /** Alpaca's `input`. */
  input: ValueRange | undefined
  /** A system message that stands beside the prompt. */
  system: ValueRange | undefined
}

/** Finds the prompts of rows. */
export class PromptFinder {
  /** The row that was looked for last has a field that is looked for, if with null. */
  hasField = false
  #finder = new MemberFinder(FINDER_NAMES)
  #field: Field | undefined

  /** @param field the only one that counts (`--prompt-field`); undefined for {@link PROMPT_FIELDS} */
  constructor(field: Field | undefined) {
    this.#field = field
  }

  /** Looks at the row that the scanner has just read; the other methods tell what was seen. */
  look(scanner: JsonScanner, bytes: Buffer): void {
    this.#finder.look(scanner, bytes)
  }

  /** The key of the row by the default rule: the first of KEY_FIELDS that holds a scalar. */
  key(bytes: Buffer): ValueRange | undefined {
    const finder = this.#finder
    for (let place = KEYS; place < FINDER_NAMES.length; place++) {
      if (!finder.has(place)) continue
      const value = scalarKey(bytes, finder.value(place))
      if (value !== undefined) return value
    }
    return undefined
  }

  /**
   * Finds the prompt of the row; reading inside moves the scanner.
   *
   * @throws RowProblem `no-prompt` or `wrong-type`
   */
  find(scanner: JsonScanner, bytes: Buffer): Prompt {
    const finder = this.#finder
    const system = this.#system(bytes)
    const field = this.#field
    this.hasField = false
    if (field !== undefined) {
      const value = this.#notNull(bytes, findField(scanner, bytes, field))
      if (value !== undefined) return promptOf(bytes, field.name, value, undefined, system)
      const why = this.hasField ? `the field '${field.name}' is null` : undefined
      throw new RowProblem('no-prompt', why ?? `the row has no field '${field.name}'`)
    }
    for (let place = 0; place < PROMPT_FIELDS.length; place++) {
      const value = this.#notNull(bytes, finder.value(place))
      if (value === undefined) continue
      const name = PROMPT_FIELDS[place]!
      if (bytes[value.start] === 0x22 && TURN_FIELDS.has(name)) throw textForTurns(name)
      const input = place === INSTRUCTION ? finder.value(INPUT) : undefined
      return promptOf(bytes, name, value, input, system)
    }
    throw new RowProblem('no-prompt', this.hasField ? 'the field of the prompt is null' : undefined)
  }

  #notNull(bytes: Buffer, value: ValueRange | undefined): ValueRange | undefined {
    if (value === undefined) return undefined
    this.hasField = true
    return bytes[value.start] === 0x6e ? undefined : value
  }

  #system(bytes: Buffer): ValueRange | undefined {
    for (let place = SYSTEM; place < SYSTEM + SYSTEM_FIELDS.length; place++) {
      const value = this.#finder.value(place)
      if (value && bytes[value.start] === 0x22 && value.end - value.start > 2) return value
    }
    return undefined
  }
}

/** The names of the top-level members that the scanner has just read. */
export function memberNames(scanner: JsonScanner, bytes: Buffer): string[] {
  const names: string[] = []
  for (let index = 0; index < scanner.memberCount; index++) {
    const at = index * MEMBER_STRIDE
    names.push(
      JSON.parse(bytes.toString('utf8', scanner.members[at]!, scanner.members[at + 1]!)) as string,
    )
  }
  return names
}

function promptOf(
  bytes: Buffer,
  name: string,
  value: ValueRange,
  input: ValueRange | undefined,
  system: ValueRange | undefined,
): Prompt {
  const first = bytes[value.start]
  if (first === 0x22) {
    const hasInput =
      input !== undefined && bytes[input.start] === 0x22 && input.end - input.start > 2
    return { shape: hasInput ? 'alpaca' : 'text', value, input, system }
  }
  if (first !== 0x5b) {
    throw new RowProblem('wrong-type', `the field '${name}' holds neither text nor turns`)
  }
  return { shape: arrayShape(bytes, name, value), value, input: undefined, system }
}

/** A conversation that was written as a text of JSON, as likely as not. */
function textForTurns(name: string): RowProblem {
  const wayOut = `--prompt-field ${name} asks it as it stands`
  return new RowProblem('wrong-type', `the field '${name}' holds a text, not turns: ${wayOut}`)
}

/** What an array asks is told by its first element. */
function arrayShape(bytes: Buffer, name: string, value: ValueRange): Prompt['shape'] {
  const first = bytes[skipBlank(bytes, value.start + 1)]!
  if (first === 0x7b || first === 0x5d) return 'conversation'
  // UltraChat's own files hold texts that alternate; MT-Bench's `turns` hold the user's alone.
  if (first === 0x22) return name === 'turns' ? 'turns' : 'conversation'
  if (first === 0x2d || (first >= 0x30 && first <= 0x39)) return 'tokens'
  throw new RowProblem('wrong-type', `the field '${name}' holds neither text nor turns`)
}
