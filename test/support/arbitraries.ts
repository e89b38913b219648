import fc from 'fast-check'

/** Text with what framers and splitters trip over. */
export const text = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom('a', 'b', ' ', '1', 'token', ',', ':') },
      {
        weight: 2,
        arbitrary: fc.constantFrom('{', '}', '[', ']', '"', '\\', '{}', '"}', '{"id":1}', '\n'),
      },
      fc.constantFrom('é', '中', '😀', '\u2028', '\u0085', '\u0000', '\ufeff', '\ud83d'),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(''))

const scalar = fc.oneof(
  text,
  fc.integer(),
  fc.constantFrom('-0', '1e400', '123456789012345678901', '0.10').map(raw),
  fc.boolean(),
  fc.constant(null),
)

/** A token that JSON.stringify must not touch. */
interface Raw {
  raw: string
}

function raw(token: string): Raw {
  return { raw: token }
}

const inner = fc.oneof(
  { weight: 3, arbitrary: scalar },
  fc.array(scalar, { maxLength: 3 }),
  fc.dictionary(fc.constantFrom('x', 'y', 'role', 'content'), scalar, { maxKeys: 3 }),
  fc.array(fc.record({ role: text, content: text }), { maxLength: 3 }),
)

/** JSON text of a value, as careful and careless writers write it. */
export const json = fc.tuple(inner, fc.constantFrom('', ' ', '  ')).map(([value, gap]) => {
  return stringify(value, gap)
})

function stringify(value: unknown, gap: string): string {
  if (value !== null && typeof value === 'object') {
    if ('raw' in value) return (value as Raw).raw
    if (Array.isArray(value)) {
      return `[${gap}${value.map((item) => stringify(item, gap)).join(`,${gap}`)}]`
    }
    const members = Object.entries(value).map(
      ([key, member]) => `${JSON.stringify(key)}:${gap}${stringify(member, gap)}`,
    )
    return `{${members.join(`,${gap}`)}${gap}}`
  }
  return JSON.stringify(value)
}

/** Records of one file: the same keys in the same order, the values free but of the file's kinds. */
export const records = fc
  .tuple(
    fc.uniqueArray(fc.constantFrom('id', 'text', 'messages', 'meta', 'usage'), { minLength: 1 }),
  )
  .chain(([keys]) =>
    fc.array(
      fc
        .tuple(...keys.map((key) => memberOf(key)))
        .map((values) => `{${keys.map((key, i) => `"${key}":${values[i]}`).join(',')}}`),
      { minLength: 1, maxLength: 12 },
    ),
  )

/** Values by key: those that may be objects are always objects or null, as in real files. */
function memberOf(key: string): fc.Arbitrary<string> {
  if (key === 'id') return fc.nat().map(String)
  if (key === 'text') return text.map((value) => JSON.stringify(value))
  if (key === 'messages') {
    const message = fc.record({ role: text, content: text })
    return fc.array(message, { minLength: 1, maxLength: 3 }).map((value) => JSON.stringify(value))
  }
  return fc.record({ a: fc.nat(), b: text }).map((value) => JSON.stringify(value))
}
