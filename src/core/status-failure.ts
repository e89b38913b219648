import { errorMessage, excerpt } from './error-body.ts'
import { type Failure, isRetriedStatus } from './failure.ts'
import { retryAfterOf, shouldRetryOf } from './retry-policy.ts'

/**
 * The failure that a reply with another status than 2xx is.
 *
 * @param date milliseconds since 1970, for a Retry-After date
 */
export function statusFailure(
  status: number,
  headers: Readonly<Record<string, string | string[] | undefined>>,
  body: string,
  date: number,
): Failure {
  const said = errorMessage(body) ?? excerpt(body)
  const retryAfter = retryAfterOf(headers, date)
  return {
    code: `http-${status}`,
    message: `HTTP ${status}${said === '' ? '' : `: ${said}`}`,
    retryable: shouldRetryOf(headers) ?? isRetriedStatus(status),
    httpStatus: status,
    ...(retryAfter !== undefined && { retryAfter }),
  }
}
