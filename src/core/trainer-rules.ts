import { isEmptyContent, isMessageContent, type Turn } from './conversation.ts'

/** Why a conversation is left out: the codes of counts and of docs/trainers.md. */
export const LEFT_OUT = {
  failed: 'the record is the trace of a failed request',
  'no-question': 'the line of a batch file holds no question (--to openai-batch takes it)',
  'no-answer': 'the last turn is not the assistant’s',
  'empty-answer': 'the answer is empty',
  finish: 'the answer ended otherwise than --only allows',
  'too-short': 'the answer is shorter than --min-chars',
  roles: 'the roles do not alternate, user first, system messages before',
  'empty-turn': 'a turn before the answer is empty',
  'not-text': 'a content is no text, or a turn calls tools where the form has text alone',
  'no-token-ids': 'no token ids were recorded',
  duplicate: 'the same conversation came before',
} as const

export type LeftOutCode = keyof typeof LEFT_OUT

/** An answer that is one: text, parts or tool calls. */
export function ruleOfAnswer(bytes: Buffer, turns: readonly Turn[]): LeftOutCode | undefined {
  const answer = turns.at(-1)
  if (answer?.role !== 'assistant') return 'no-answer'
  const isEmpty = isEmptyContent(bytes, answer.content) && !hasToolCalls(bytes, answer)
  return isEmpty ? 'empty-answer' : undefined
}

/** What all trainers want: an answer, and a user who speaks first. */
export function ruleOfConversation(bytes: Buffer, turns: readonly Turn[]): LeftOutCode | undefined {
  const flaw = ruleOfAnswer(bytes, turns)
  if (flaw !== undefined) return flaw
  if (turns.find(({ role }) => role !== 'system')?.role !== 'user') return 'roles'
  const isOdd = ({ content }: Turn): boolean =>
    content !== undefined && !isMessageContent(bytes, content)
  return turns.some(isOdd) ? 'not-text' : undefined
}

/**
 * What trainers want that read text alone: system messages first, then user and assistant in turn,
 * every content a text that is not empty, and no calls of tools, for which there is no place.
 */
export function ruleOfText(bytes: Buffer, turns: readonly Turn[]): LeftOutCode | undefined {
  const flaw = ruleOfAnswer(bytes, turns)
  if (flaw !== undefined) return flaw
  let expected: Turn['role'] = 'user'
  let begun = false
  for (const turn of turns) {
    const { role, content } = turn
    if (role === 'system') {
      if (begun) return 'roles'
    } else if (role !== expected) return 'roles'
    else {
      begun = true
      expected = role === 'user' ? 'assistant' : 'user'
    }
    if (hasToolCalls(bytes, turn)) return 'not-text'
    if (isEmptyContent(bytes, content)) return role === 'assistant' ? 'empty-answer' : 'empty-turn'
    if (bytes[content!.start] !== 0x22) return 'not-text'
  }
  return undefined
}

function hasToolCalls(bytes: Buffer, { toolCalls }: Turn): boolean {
  return (
    toolCalls !== undefined &&
    bytes[toolCalls.start] === 0x5b &&
    toolCalls.end - toolCalls.start > 2
  )
}
