import type { RecordForm } from '../../core/record-form.ts'

/** What the options of validate-jsonl become. */
export interface ValidateOptions {
  quiet: boolean
  requireObject: boolean
  require: string[]
  unique: string | undefined
  schema: string | undefined
  as: RecordForm | 'any'
  allow: string[]
  strict: boolean
  minRecords: number
  maxDepth: number
  maxErrors: number | undefined
  rejects: string | undefined
  json: boolean
  readSize: number | undefined
  stats: string | undefined
}
