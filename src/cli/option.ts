import { parseCount, parseDuration, parseNumber, parseShare, parseSize } from '../core/quantity.ts'
import { parseShard, type Shard } from '../core/shard.ts'
import { usageError } from '../core/tool-error.ts'

/** One option of a command: how it is spelt, what it takes, and what it becomes. */
export interface Option<T> {
  /** Its heading in the help text. */
  group: string
  describe: string
  /** A single letter, without the dash. */
  short?: string
  /** What the help text calls the value; absent for flags. */
  metavar?: string
  /** The value may be left out, and then must be attached where it is given: `-i.bak`. */
  valueOptional?: boolean
  choices?: readonly string[]
  /** Left out of the help text: it only exists to be refused with a pointer. */
  hidden?: boolean
  /** What the help text gives as the default. */
  defaultText?: string
  /** Turns the values given, in order, into the option's value; called with none where not given. */
  read(values: readonly string[], name: string): T
}

/** Options by their name in code; `firstTokenTimeout` is `--first-token-timeout`. */
export type OptionTable = Record<string, Option<unknown>>

/** What a command gets for its table of options. */
export type OptionValues<Table extends OptionTable> = {
  [Name in keyof Table]: Table[Name] extends Option<infer T> ? T : never
}

interface Words {
  group: string
  describe: string
  hidden?: boolean
  short?: string
  metavar?: string
  valueOptional?: boolean
  defaultText?: string
}

/** An option without a value. */
export function flag(words: Words): Option<boolean> {
  return { ...words, read: (values) => values.length > 0 }
}

/** Any text; undefined where the option is not given. The last one given counts. */
export function text(words: Words): Option<string | undefined> {
  return { metavar: 'TEXT', ...words, read: (values) => values.at(-1) }
}

/**
 * A file to write to; undefined where the option is not given. `-` is none: standard output is the
 * records', and what else would go there?
 */
export function outputFile(words: Words): Option<string | undefined> {
  return {
    metavar: 'FILE',
    ...words,
    read(values, name) {
      const file = values.at(-1)
      if (file === '-') throw usageError(`${name} takes a file, not - (./- is a file of that name)`)
      return file
    },
  }
}

/** An option that may be given several times. */
export function texts(words: Words): Option<string[]> {
  return { metavar: 'TEXT', ...words, read: (values) => [...values] }
}

/**
 * Comma-separated words, also from several times; empty where the option is not given. Given without
 * a word, as by a variable that is not set, it would check nothing and say nothing.
 */
export function list(words: Words & { choices?: readonly string[] }): Option<string[]> {
  return {
    metavar: 'NAME,...',
    ...words,
    read(values, name) {
      const all = values.flatMap((value) => value.split(',')).filter((value) => value !== '')
      if (values.length > 0 && all.length === 0) throw usageError(`${name} takes at least one word`)
      for (const value of all) {
        if (words.choices && !words.choices.includes(value))
          throw notOneOf(name, value, words.choices)
      }
      return all
    },
  }
}

/** One of a few words. */
export function choice<const T extends string>(
  words: Words & { choices: readonly T[]; otherwise: T },
): Option<T> {
  return {
    metavar: words.choices.join('|'),
    defaultText: words.otherwise,
    ...words,
    read(values, name) {
      const value = values.at(-1) ?? words.otherwise
      if (!words.choices.includes(value as T)) throw notOneOf(name, value, words.choices)
      return value as T
    },
  }
}

/** Which part of the records is meant: `K/N`, or `auto` for what the scheduler says. */
export function shard(words: Words): Option<Shard | 'auto' | undefined> {
  return {
    metavar: 'K/N|auto',
    ...words,
    read(values, name) {
      const value = values.at(-1)
      if (value === undefined || value === 'auto') return value
      const parsed = parseShard(value)
      if (parsed === undefined) {
        const expected = 'auto, or K/N with K from 0 to N - 1, such as 0/8'
        throw usageError(`${name} takes ${expected}, not '${value}'`)
      }
      return parsed
    },
  }
}

type NumberWords<T> = Words & { otherwise: T; min?: number }

/** A whole number. */
export function count<T extends number | undefined>(words: NumberWords<T>): Option<number | T> {
  return quantity('N', 'a whole number', parseCount, words)
}

/** A whole number, or a word. */
export function countOr<const W extends string>(
  words: NumberWords<number> & { word: W },
): Option<number | W> {
  const whole = quantity('N', `a whole number or ${words.word}`, parseCount, words)
  return {
    ...whole,
    metavar: `N|${words.word}`,
    read: (values, name) => (values.at(-1) === words.word ? words.word : whole.read(values, name)),
  }
}

/** Any number, a fraction too. */
export function number<T extends number | undefined>(words: NumberWords<T>): Option<number | T> {
  return quantity('X', 'a number', parseNumber, words)
}

/** A duration, in milliseconds; a bare number is seconds. */
export function duration<T extends number | undefined>(words: NumberWords<T>): Option<number | T> {
  return quantity('TIME', 'a duration such as 30, 30s, 10m or 1500ms', parseDuration, words)
}

/** A share: `20%` or `0.2`. */
export function percent<T extends number | undefined>(words: NumberWords<T>): Option<number | T> {
  return quantity('P%', 'a share such as 20% or 0.2', parseShare, words)
}

/** A size in bytes. */
export function size<T extends number | undefined>(words: NumberWords<T>): Option<number | T> {
  return quantity('SIZE', 'a size such as 4096, 64K or 64M', parseSize, words)
}

function quantity<T extends number | undefined>(
  metavar: string,
  expected: string,
  parse: (text: string) => number | undefined,
  words: NumberWords<T>,
): Option<number | T> {
  return {
    metavar,
    ...words,
    read(values, name) {
      const given = values.at(-1)
      if (given === undefined) return words.otherwise
      const value = parse(given)
      if (value === undefined) throw usageError(`${name} takes ${expected}, not '${given}'`)
      if (words.min !== undefined && value < words.min) {
        throw usageError(`${name} must be at least ${words.min}, not ${given}`)
      }
      return value
    },
  }
}

function notOneOf(name: string, value: string, choices: readonly string[]): Error {
  return usageError(`${name} takes one of ${choices.join(', ')}, not '${value}'`)
}

/** `firstTokenTimeout` as it is spelt on a command line, `--first-token-timeout`. */
export function optionName(name: string): string {
  return `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}
