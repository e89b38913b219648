/**
 * What is done to most bytes, compiled to WebAssembly by AssemblyScript. Nothing here allocates: all
 * functions work on the one memory that they are given, the bytes from 0 on and the tables of
 * layout.ts behind them. A chunk of sixteen bytes may reach behind the bytes that are asked for.
 */

export { contentHash } from './hash'
export { judgeRows, otherVerdicts } from './judge'
export {
  begin,
  CLOSERS,
  HEADER,
  LONG_STRINGS,
  MEMBERS,
  NAMES,
  ROWS,
  SCRATCH,
} from './layout'
export { cleanLines, lineCount } from './lines'
export { answerRows, keyRows, nextLine, rowsLeft } from './rows'
export { stringEnd } from './string'
export { value } from './value'
export { xxh64Stripes } from './xxh64'
