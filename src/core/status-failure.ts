import { errorMessage, excerpt } from './error-body.ts'
import { type Failure, isRetriedStatus } from './failure.ts'
import { retryAfterOf, shouldRetryOf } from './retry-policy.ts'

/** Statuses that name another address; it is not followed, so that no key goes there. */
export const REDIRECTS: readonly number[] = [301, 302, 303, 307, 308]

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
  const said = redirection(status, headers.location) ?? errorMessage(body) ?? excerpt(body)
  const retryAfter = retryAfterOf(headers, date)
  return {
    code: `http-${status}`,
    message: `HTTP ${status}${said === '' ? '' : `: ${said}`}`,
    retryable: shouldRetryOf(headers) ?? isRetriedStatus(status),
    httpStatus: status,
    ...(retryAfter !== undefined && { retryAfter }),
  }
}

function redirection(status: number, location: string | string[] | undefined): string | undefined {
  const [to] = Array.isArray(location) ? location : [location]
  if (to === undefined || !REDIRECTS.includes(status)) return undefined
  return `the server redirects to ${excerpt(to)}: put that address into --url, up to its /v1`
}
