import { AnswerLook, type AnswerTable } from './answer-look.ts'
import { type BlockVerdict, lookOver } from './clean-block.ts'
import { KeyRule } from './key.ts'
import { KeyLook, type KeyTable } from './key-look.ts'
import { LineJudge, type LinePolicy } from './line-judge.ts'

/** What is looked for in a whole block of lines; plain data, so that another thread can be told. */
export type LookOrder =
  | { kind: 'clean'; policy: LinePolicy }
  | { kind: 'keys' | 'answers'; policy: LinePolicy; key: string | undefined }

/** What a look of each kind gives. */
export interface LookResults {
  clean: BlockVerdict
  keys: KeyTable | undefined
  answers: AnswerTable | undefined
}

export type Look<Result> = (bytes: Buffer, end: number) => Result

/** The function that carries out an order over block after block, in whatever thread it is made. */
export function lookFor(order: LookOrder): Look<LookResults[LookOrder['kind']]> {
  const judge = new LineJudge(order.policy)
  if (order.kind === 'clean') return (bytes, end) => lookOver(judge, bytes, end)
  const Kind = order.kind === 'keys' ? KeyLook : AnswerLook
  const records = new Kind(judge, new KeyRule(order.key))
  return (bytes, end) => records.look(bytes, end)
}
