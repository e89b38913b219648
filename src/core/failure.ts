/**
 * The ways in which a request fails, each with a stable code: in messages, failure records, --stats
 * and the help text.
 */
export const FAILURES = {
  refused: { retried: true, help: 'the connection was refused' },
  dns: { retried: true, help: 'the name of the server was not found' },
  reset: { retried: true, help: 'the connection was reset before or in the answer' },
  closed: { retried: true, help: 'the server closed the connection before or in the answer' },
  descriptors: { retried: true, help: 'too few file descriptors (ulimit -n)' },
  network: { retried: true, help: 'another failure of the connection' },
  'connect-timeout': { retried: true, help: 'no connection within --connect-timeout' },
  'first-token-timeout': { retried: true, help: 'no first token within --first-token-timeout' },
  'idle-timeout': { retried: true, help: 'silence for --idle-timeout' },
  timeout: { retried: true, help: 'not done within --timeout' },
  'http-408': {
    retried: true,
    help: 'status 408 (409, 425, 429, 500, 502, 503, 504, 529 likewise)',
  },
  'http-400': { retried: false, help: 'another status of 400 to 599' },
  'not-json': { retried: true, help: 'the answer is no JSON, such as an HTML page, or cut off' },
  'no-choices': { retried: true, help: 'the answer has no choices' },
  'no-finish': { retried: true, help: 'a stream that ends without finish_reason' },
  'in-band-error': { retried: true, help: 'an error inside an answer of status 200' },
  aborted: { retried: true, help: 'finish_reason abort' },
  'not-jsonl': { retried: false, help: 'the input line is no JSON' },
  'line-too-long': {
    retried: false,
    help: 'the input line is longer than 256 MiB, and is not kept',
  },
  'no-prompt': { retried: false, help: 'the record has nothing to ask' },
  'bad-messages': { retried: false, help: 'messages that end with the assistant' },
  'bad-batch-line': {
    retried: false,
    help: 'a batch line with a method, url or stream that cannot be',
  },
  'bad-input': { retried: false, help: 'a failure record whose line was no JSON' },
  'too-large': { retried: false, help: 'an answer of more than --max-answer' },
  'cut-by-length': { retried: false, help: 'finish_reason length, with --on-length fail' },
} as const

/** Statuses that may be better the next time. */
const RETRIED_STATUSES = new Set([408, 409, 425, 429, 500, 502, 503, 504, 529])

/** One failed attempt, or a record that could not be asked. */
export interface Failure {
  code: string
  message: string
  /** Goes into the brackets behind the message, before the attempt. */
  detail?: string
  retryable: boolean
  httpStatus?: number
  /** Milliseconds that the server asked to wait. */
  retryAfter?: number
  /** Pieces of text that had come, about as many tokens: they are thrown away. */
  pieces?: number
  /** A connection that was used before broke before any byte of the reply: nobody's fault. */
  stale?: boolean
  /** Milliseconds since the last byte, or since dispatch where none came. */
  silenceMs?: number
  /** What had come of the answer, in a stream. */
  partial?: { reasoning_content: string; content: string }
}

/** Whether a status is worth another try. */
export function isRetriedStatus(status: number): boolean {
  return RETRIED_STATUSES.has(status)
}

const NETWORK_CODES: Record<string, keyof typeof FAILURES> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'dns',
  EAI_AGAIN: 'dns',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  UND_ERR_SOCKET: 'closed',
  UND_ERR_CONNECT_TIMEOUT: 'connect-timeout',
  EMFILE: 'descriptors',
  ENFILE: 'descriptors',
}

/** What OpenSSL says of a certificate whose authority is not among the usual ones. */
const UNKNOWN_AUTHORITY = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** A failure of the connection as a Failure; the message names what the system said. */
export function networkFailure(error: Error): Failure {
  const cause = (error as { code?: string }).code ?? ''
  const code = NETWORK_CODES[cause] ?? 'network'
  const sentence: Partial<Record<string, string>> = {
    refused: 'Connection refused',
    dns: 'The name of the server was not found',
    reset: 'Connection reset by the server',
    closed: 'The server closed the connection',
    descriptors: 'Too few file descriptors',
  }
  const help = UNKNOWN_AUTHORITY.has(cause) ? ' (--ca-file FILE names the authority to trust)' : ''
  const detail =
    code === 'network' ? `Connection failed: ${error.message}${help}` : (sentence[code] ?? '')
  return { code, message: detail, retryable: true }
}

/** The codes with their meanings, a line each, for a help text. */
export function failureCodes(): string {
  const lines = Object.entries(FAILURES).map(
    ([code, { retried, help }]) => `  ${code.padEnd(20)} ${help}${retried ? '' : ' (not retried)'}`,
  )
  return lines.join('\n')
}
