/** The binary form of WebAssembly, as far as the modules written by hand need it. */

/** Types of values. */
export const I32 = 0x7f
export const I64 = 0x7e
export const V128 = 0x7b

/** What every module begins with. */
export const MAGIC_AND_VERSION = [0x00, 0x61, 0x73, 0x6d, 1, 0, 0, 0]
/** A type of function; its parameters and results follow. */
export const FUNCTION = [0x60]

/** A loop and a condition without a result, and their end. */
export const LOOP = [0x03, 0x40]
export const IF = [0x04, 0x40]
export const END = [0x0b]

/** Instructions for 32 bits, named as in the text form. */
export const SUB = [0x6b]
export const ADD = [0x6a]
export const LT_U = [0x49]

export const get = (local: number): number[] => [0x20, local]
export const set = (local: number): number[] => [0x21, local]
export const tee = (local: number): number[] => [0x22, local]
/** Goes on so many blocks outwards: at the begin of a loop, at the end of all else. */
export const branch = (outwards: number): number[] => [0x0c, outwards]
/** A constant of 32 bits. */
export const constant = (value: number): number[] => [0x41, ...signed(value)]

/** A section of a module. */
export function section(id: number, content: readonly number[]): number[] {
  return [id, ...unsigned(content.length), ...content]
}

/** The bodies of all functions. */
export function codeSection(codes: readonly (readonly number[])[]): number[] {
  const sized = codes.flatMap((code) => [...unsigned(code.length), ...code])
  return section(10, [codes.length, ...sized])
}

/** A name of less than 128 letters. */
export function name(text: string): number[] {
  return [text.length, ...Buffer.from(text)]
}

/** A number in LEB128. */
export function unsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...unsigned(value >>> 7)]
}

/** A number in signed LEB128. */
function signed(value: number): number[] {
  const byte = value & 0x7f
  const rest = value >> 7
  const isLast = rest === (byte & 0x40 ? -1 : 0)
  return isLast ? [byte] : [byte | 0x80, ...signed(rest)]
}
