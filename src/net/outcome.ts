import type { Answer } from '../core/answer.ts'
import type { Failure } from '../core/failure.ts'
import type { RawReply } from '../core/raw-reply.ts'

/** What came of one attempt. */
export type Outcome = { timing: Timing } & (
  | { kind: 'answer'; answer: Answer }
  | ({ kind: 'raw'; status: number; requestId: string | undefined; body: string } & RawReply)
  | { kind: 'failure'; failure: Failure }
)

/** Milliseconds since dispatch. */
export interface Timing {
  firstToken: number | undefined
  total: number
}
