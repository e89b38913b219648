/** An input line as a failure keeps it: JSON as it is, anything else as text or base64. */
export type SourceLine = { json: string } | { text: string } | { base64: string }

/** A record that cannot be asked; the message says why and what to do. */
export class RecordError extends Error {
  readonly code: string
  /** Where the line was a failure record: the line that it stands for, and under which id. */
  standsFor: { idToken: string; input: SourceLine } | undefined

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}
