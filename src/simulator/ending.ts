import type { Answer } from './answer.ts'
import type { FaultName } from './faults.ts'

/** How an answer ends on the wire once its last token has gone out. */
export type Ending = 'whole' | 'without-done' | 'error' | 'stall' | 'reset' | 'cut'

/** An answer and how it goes out. */
export interface Plan {
  readonly answer: Answer
  readonly ending: Ending
  /** How many times longer than its generation it takes to go out. */
  readonly slowness: number
  /** Whether a client has a whole answer at the end; the tokens of others count as wasted. */
  readonly usable: boolean
}

export const SLOWNESS = 10

/** The faults that show while an answer is made; all others are answers of their own. */
export type LateFault = Exclude<FaultName, 'hang' | 'garbage' | 'html' | 'html-502' | 'no-choices'>

export function planWithoutFault(answer: Answer): Plan {
  return { answer, ending: 'whole', slowness: 1, usable: true }
}

/** What becomes of an answer that a fault hits. */
export function planWithFault(answer: Answer, fault: LateFault): Plan {
  const plan = planWithoutFault(answer)
  switch (fault) {
    case 'slow':
      return { ...plan, slowness: SLOWNESS }
    case 'no-done':
      return { ...plan, ending: 'without-done' }
    case 'no-finish':
      return { ...plan, answer: { ...answer, finishReason: null }, usable: false }
    case 'empty':
      return { ...plan, answer: emptied(answer) }
    case 'abort':
      return { ...plan, answer: { ...halved(answer), finishReason: 'abort' }, usable: false }
    case 'in-band-error':
      return { ...plan, answer: halved(answer), ending: 'error', usable: false }
    case 'stall':
    case 'reset':
    case 'cut':
      return { ...plan, answer: halved(answer), ending: fault, usable: false }
  }
}

function halved(answer: Answer): Answer {
  const tokens = Math.ceil(answer.tokens / 2)
  const reasoningTokens = Math.min(answer.reasoningTokens, tokens)
  return { ...answer, tokens, reasoningTokens, textTokens: tokens }
}

/** One token was generated: the one that says that nothing follows. */
function emptied(answer: Answer): Answer {
  return { ...answer, tokens: 1, reasoningTokens: 0, textTokens: 0, finishReason: 'stop' }
}
