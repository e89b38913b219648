import { readFile } from 'node:fs/promises'
import type { ErrorObject, ValidateFunction } from 'ajv'
import { Ajv } from 'ajv'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { ioError, ToolError } from '../../core/tool-error.ts'
import type { Finding } from './line-checks.ts'

/** Problems of one line that are told; more of them only repeat each other. */
const MOST_TOLD = 5

/**
 * A check by a JSON Schema, of draft 2020-12 or, where its `$schema` says so, draft-07.
 *
 * @throws ToolError where the file cannot be read or holds no schema
 */
export async function schemaCheck(file: string): Promise<(value: unknown) => Finding[]> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw ioError(error, file, 'read')
  })
  const validate = compile(file, text)
  return (value) => {
    if (validate(value)) return []
    return (validate.errors ?? []).slice(0, MOST_TOLD).map((error) => ({
      code: 'schema',
      message: sentence(error),
    }))
  }
}

function compile(file: string, text: string): ValidateFunction {
  try {
    const schema = JSON.parse(text) as { $schema?: string } | boolean
    const named = typeof schema === 'object' ? (schema.$schema ?? '') : ''
    const options = {
      allErrors: true,
      strict: false,
      validateFormats: false,
      logger: false,
    } as const
    const ajv = named.includes('draft-07') ? new Ajv(options) : new Ajv2020(options)
    return ajv.compile(schema)
  } catch (error) {
    const why = (error as Error).message
    throw new ToolError('schema', `this is no JSON Schema: ${why}`, { place: { file } })
  }
}

/** `/messages/0/role: must be equal to one of the allowed values ("user", "assistant")`. */
function sentence({ instancePath, message, params, keyword }: ErrorObject): string {
  const expected =
    keyword === 'enum' || keyword === 'const'
      ? ` (${JSON.stringify(params.allowedValues ?? params.allowedValue)})`
      : keyword === 'additionalProperties'
        ? ` ('${String(params.additionalProperty)}')`
        : ''
  return `${instancePath === '' ? 'the record' : instancePath}: ${message ?? 'does not fit the schema'}${expected}`
}
