import type { ByteBuilder } from './byte-builder.ts'
import type { ExportRow } from './export-form.ts'
import type { ValueRange } from './field.ts'
import type { MessageWriter } from './message-writer.ts'
import { RowHash } from './row-hash.ts'

const NEWLINE = 0x0a
const NULL = Buffer.from('null')

/**
 * Appends a line of OpenAI's batch output; one that is such a line already passes byte for byte. Its
 * own ids are made of the record's, so that the same file gives the same bytes.
 */
export function batchAnswer(out: ByteBuilder, row: ExportRow, messages: MessageWriter): undefined {
  const { bytes, record, id, turns } = row
  if (record.isBatch) {
    out.append(bytes, record.start, record.end)
    out.byte(NEWLINE)
    return undefined
  }
  const text = (part: string): void => out.append(Buffer.from(part))
  const value = (range: ValueRange | undefined): void => {
    if (range === undefined) out.append(NULL)
    else out.append(bytes, range.start, range.end)
  }
  const own = identity(id)
  text(`{"id":"batch_req_${own}","custom_id":`)
  out.append(id)
  text(`,"response":{"status_code":200,"request_id":"${own}","body":{"id":"chatcmpl-${own}",`)
  text('"object":"chat.completion","created":0,"model":')
  value(record.model)
  text(',"choices":[{"index":0,"message":')
  messages.write(out, bytes, turns.at(-1)!)
  text(',"logprobs":null,"finish_reason":')
  value(record.finishReason)
  text('}],"usage":')
  value(record.usage)
  text('}},"error":null}\n')
  return undefined
}

function identity(id: Buffer): string {
  const hash = new RowHash('batch', '')
  hash.ofToken(id, 0, id.length)
  return [hash.high, hash.low].map((word) => word.toString(16).padStart(8, '0')).join('')
}
