import type { ServerResponse } from 'node:http'
import { injectedStatus } from './api-error.ts'
import type { LateFault } from './ending.ts'
import type { Fault, FaultName } from './faults.ts'
import { hashText, mix } from './random.ts'
import { EVENTS, JSON_TYPE, reply } from './reply.ts'
import type { GenerationRequest } from './request.ts'
import { DONE, event, type Head } from './wire.ts'

/** The faults that answer instead of the model: nothing is generated. */
export type EarlyFault = Exclude<FaultName, LateFault> | number

/** The pages of nginx before a server that is down, and of a portal that wants a login. */
const HTML_502 = `<html>
<head><title>502 Bad Gateway</title></head>
<body>
<center><h1>502 Bad Gateway</h1></center>
<hr><center>nginx</center>
</body>
</html>
`
const HTML_200 = `<!DOCTYPE html>
<html><head><title>Sign in</title></head>
<body><form method="post" action="/login"><input name="user"><input name="password"></form></body>
</html>
`

const GARBAGE_BYTES = 512

export function isEarly(name: Fault['name']): name is EarlyFault {
  if (typeof name === 'number') return true
  return ['hang', 'garbage', 'html', 'html-502', 'no-choices'].includes(name)
}

interface Reply {
  readonly status: number
  readonly type: string
  readonly body: string | Buffer
  readonly headers?: Readonly<Record<string, string>>
}

/** Answers a request as the fault says; `hang` does nothing, for ever. */
export function answerEarly(
  response: ServerResponse,
  fault: EarlyFault,
  request: GenerationRequest,
  head: Head,
): void {
  if (fault === 'hang') return
  const { status, type, body, headers } = replyFor(fault, request, head)
  reply(response, status, type, body, headers)
}

function replyFor(
  fault: Exclude<EarlyFault, 'hang'>,
  request: GenerationRequest,
  head: Head,
): Reply {
  const type = request.stream ? EVENTS : JSON_TYPE
  switch (fault) {
    case 'garbage':
      return { status: 200, type, body: garbage(hashText(request.prompt, 0)) }
    case 'html':
      return { status: 200, type: 'text/html; charset=utf-8', body: HTML_200 }
    case 'html-502':
      return { status: 502, type: 'text/html', body: HTML_502 }
    case 'no-choices':
      return { status: 200, type, body: withoutChoices(request, head) }
    default:
      return injectedReply(fault)
  }
}

function injectedReply(status: number): Reply {
  const { body, headers } = injectedStatus(status)
  return { status, type: JSON_TYPE, body, headers }
}

/** Bytes of every value, invalid UTF-8 among them; the first can begin neither JSON nor an event. */
function garbage(seed: number): Buffer {
  const bytes = Buffer.alloc(GARBAGE_BYTES)
  for (let i = 0; i < bytes.length; i++) bytes[i] = mix(seed, i)
  bytes[0] = 0xff
  return bytes
}

function withoutChoices(request: GenerationRequest, { id, created, model }: Head): string {
  const kind = request.endpoint === 'completion' ? 'text_completion' : 'chat.completion'
  if (!request.stream) {
    return JSON.stringify({ id, object: kind, created, model, choices: [] })
  }
  const object = request.endpoint === 'completion' ? kind : `${kind}.chunk`
  return event(JSON.stringify({ id, object, created, model, choices: [] })) + DONE
}
