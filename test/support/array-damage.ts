import fc from 'fast-check'
import { arrayRows } from '../../src/app/extract/array-rows.ts'
import { MemoryReader } from './memory-reader.ts'

/** What a reader of an array gave. */
export interface Given {
  /** Text and row of the elements. */
  rows: { text: string; row: number }[]
  /** Codes and rows of the broken ones, and of what is wrong besides. */
  broken: { code: string; text: string; row: number; offset: number }[]
  problems: { code: string; row: number | undefined }[]
}

/** Reads an array in pieces of a size. */
export async function readArray(bytes: Uint8Array, size: number): Promise<Given> {
  const given: Given = { rows: [], broken: [], problems: [] }
  const all = new MemoryReader(bytes)
  const reader = {
    read: (into: Buffer, offset: number, length: number) =>
      all.read(into, offset, Math.min(length, size)),
  }
  await arrayRows(reader, 'a', {
    done: false,
    shapeKnown: () => {},
    row: (_scanner, buffer, { start, end }, { row }) => {
      given.rows.push({ text: buffer.toString('utf8', start, end), row })
    },
    broken: (code, _message, buffer, { start, end }, { row, offset }) => {
      given.broken.push({ code, text: buffer.toString('latin1', start, end), row, offset })
    },
    lost: () => {},
    fileProblem: (code, _message, _file, row) => given.problems.push({ code, row }),
    blank: () => {},
    settle: () => Promise.resolve(),
  })
  return given
}

/** Texts that look like the structure around them. */
const text = fc
  .array(
    fc.constantFrom(
      '},{',
      '"',
      '\\',
      '{"id":7,"prompt":"x"},',
      '[',
      ']',
      '}',
      '{',
      ',',
      ':',
      'a',
      ' ',
      '\n',
      'ü',
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''))

const turns = fc.array(fc.record({ from: fc.constantFrom('human', 'gpt'), value: text }), {
  minLength: 1,
  maxLength: 4,
})

/** Records as data sets have them: one shape, some members missing here and there. */
const record = fc.record(
  {
    id: fc.nat({ max: 999 }),
    prompt: text,
    conversations: turns,
    meta: fc.record({ a: fc.nat({ max: 9 }), tags: fc.array(text, { maxLength: 2 }) }),
  },
  { requiredKeys: ['id', 'prompt'] },
)

export const records = fc.array(record, { minLength: 2, maxLength: 12 })

/** The bytes of each element, in one of the layouts that writers use. */
export function elementBytes(values: readonly unknown[], layout: Layout): Buffer[] {
  const indent = layout === 'pretty' ? 2 : undefined
  return values.map((value) => {
    const bytes = JSON.stringify(value, null, indent)
    return Buffer.from(indent === undefined ? bytes : bytes.replaceAll('\n', '\n  '))
  })
}

export type Layout = 'compact' | 'spaced' | 'pretty'

const AROUND: Record<Layout, [string, string, string]> = {
  compact: ['[', ',', ']'],
  spaced: ['[ ', ', ', ' ]\n'],
  pretty: ['[\n  ', ',\n  ', '\n]\n'],
}

/** An array of these elements. */
export function arrayOf(elements: readonly Uint8Array[], layout: Layout): Buffer {
  const [open, comma, close] = AROUND[layout].map((part) => Buffer.from(part)) as Buffer[]
  const parts = elements.flatMap((element, index) => (index === 0 ? [element] : [comma!, element]))
  return Buffer.concat([open!, ...parts, close!])
}

export interface Damage {
  kind:
    | 'drop-quote'
    | 'drop-bracket'
    | 'add-bracket'
    | 'drop-comma'
    | 'add-comma'
    | 'flip'
    | 'cut'
    | 'nuls'
  at: number
  byte: number
}

export const damage: fc.Arbitrary<Damage> = fc.record({
  kind: fc.constantFrom<Damage['kind']>(
    'drop-quote',
    'drop-bracket',
    'add-bracket',
    'drop-comma',
    'add-comma',
    'flip',
    'cut',
    'nuls',
  ),
  at: fc.nat(),
  byte: fc.integer({ min: 1, max: 255 }),
})

const TARGETS: Partial<Record<Damage['kind'], string>> = {
  'drop-quote': '"',
  'drop-bracket': '{}[]',
  'drop-comma': ',',
}

/** An element with one thing wrong with it. */
export function damaged(element: Buffer, { kind, at, byte }: Damage): Buffer {
  const targets = TARGETS[kind]
  const places = [...element.keys()].filter(
    (place) => targets === undefined || targets.includes(String.fromCharCode(element[place]!)),
  )
  if (places.length === 0) return element
  const place = places[at % places.length]!
  const [before, behind] = [element.subarray(0, place), element.subarray(place)]
  const insert = (text: string): Buffer => Buffer.concat([before, Buffer.from(text), behind])
  if (kind === 'add-bracket') return insert('{}[]'[byte % 4]!)
  if (kind === 'add-comma') return insert(',')
  if (kind === 'nuls') return insert('\0'.repeat(byte))
  if (kind === 'cut') return before
  if (kind !== 'flip') return Buffer.concat([before, behind.subarray(1)])
  const flipped = Buffer.from(element)
  flipped[place]! ^= byte
  return flipped
}
