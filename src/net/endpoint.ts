import { ToolError, usageError } from '../core/tool-error.ts'

/** Where an OpenAI-compatible server is. */
export interface Endpoint {
  /** As messages call it. */
  url: string
  origin: string
  /** The path below which the API lies, such as `/v1`, without a slash at its end. */
  basePath: string
  /** What follows the paths of the API, such as `?api-version=2`; it may hold a key and is not shown. */
  search: string
  /** Where the server says whether it is well: beside `/v1`, not below it. */
  healthPath: string
}

/**
 * Reads a base URL as OpenAI's SDKs take it.
 *
 * @throws ToolError `usage` where it is no http or https URL
 */
export function parseEndpoint(url: string): Endpoint {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw usageError(`--url takes a URL such as http://127.0.0.1:8000/v1, not '${shown(url)}'`)
  }
  if (parsed.protocol !== 'http:' && parsed.protocol !== 'https:') {
    throw usageError(`--url takes an http or https URL, not '${shown(url)}'`)
  }
  if (parsed.username !== '' || parsed.password !== '') {
    throw usageError('--url holds a password: give secrets in $OPENAI_API_KEY or --header-file')
  }
  const basePath = parsed.pathname.replace(/\/+$/, '')
  return {
    url: parsed.origin + basePath,
    origin: parsed.origin,
    basePath,
    search: parsed.search,
    healthPath: `${basePath.replace(/\/v1$/, '')}/health`,
  }
}

/** A URL without the password that it may hold. */
function shown(url: string): string {
  return url.replace(/[^/@]*@/, '***@')
}

/** A server that cannot be used as it was asked for; the run ends, exit code 2. */
export function serverError(code: string, endpoint: Endpoint, message: string): ToolError {
  return new ToolError(code, message, { place: { file: endpoint.url } })
}
