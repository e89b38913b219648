/** Why a row of a data set gives no prompt; the codes are part of the interface. */
export const ROW_PROBLEMS = {
  'not-object': 'the row is no object',
  'no-prompt': 'the row has none of the fields that hold a prompt',
  'wrong-type': 'the field holds neither text nor turns',
  'no-turns': 'the conversation is empty',
  'bad-turn': 'a turn is no object with a role and a content',
  'unknown-role': 'a turn has a role that no one knows',
  'assistant-first': 'the assistant (or a tool) speaks before the first user turn',
  'no-user': 'the conversation has no user turn',
  'empty-prompt': 'the prompt is empty',
  'not-text': 'a turn is no text: --turns keep passes messages with other parts on',
  'two-systems': 'the conversation has several system messages: --turns keep passes them on',
} as const

export type RowProblemCode = keyof typeof ROW_PROBLEMS

/** A row that cannot be used. */
export class RowProblem extends Error {
  readonly code: RowProblemCode

  constructor(code: RowProblemCode, message: string = ROW_PROBLEMS[code]) {
    super(message)
    this.name = 'RowProblem'
    this.code = code
  }
}
