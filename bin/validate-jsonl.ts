#!/usr/bin/env node
import { commonOptions, defineCommand, readOptions } from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import { choice, count, flag, list, outputFile, text } from '../src/cli/option.ts'
import { ALLOWABLE } from '../src/core/line-judge.ts'
import { RECORD_FORMS } from '../src/core/record-form.ts'

export const command = defineCommand({
  name: 'validate-jsonl',
  summary: 'check that every line is one JSON value, strictly, and say what is wrong where',
  usage: 'validate-jsonl [options] [FILE...]',
  examples: [
    'validate-jsonl -q raw_responses.jsonl            # only the verdict, before training',
    'validate-jsonl --require id,conversations data.jsonl > good.jsonl',
    'zcat data.jsonl.gz | validate-jsonl --rejects bad.jsonl | next-stage',
  ],
  options: {
    requireObject: flag({ group: 'Checks', describe: 'Every line must be a JSON object' }),
    require: list({
      group: 'Checks',
      metavar: 'FIELD,...',
      describe: 'Every line must be an object with these fields (dots reach inside)',
    }),
    unique: text({
      group: 'Checks',
      metavar: 'FIELD',
      describe: 'No two records may have the same value there; dots reach inside',
    }),
    schema: text({
      group: 'Checks',
      metavar: 'FILE',
      describe: 'Every line must fit this JSON Schema (2020-12, or draft-07 by its $schema)',
    }),
    as: choice({
      group: 'Checks',
      choices: ['any', ...RECORD_FORMS],
      otherwise: 'any',
      describe: 'Every line must be such a record as a provider or trainer takes it',
    }),
    allow: list({
      group: 'Checks',
      metavar: 'CODE,...',
      choices: ALLOWABLE,
      describe: `Let these pass: ${ALLOWABLE.join(', ')}`,
    }),
    strict: flag({ group: 'Checks', describe: 'A missing final newline is an error' }),
    minRecords: count({
      group: 'Checks',
      otherwise: 0,
      describe: 'Fewer valid lines in all than this are an error',
    }),
    maxDepth: count({
      group: 'Checks',
      otherwise: 10_000,
      min: 1,
      defaultText: '10000',
      describe: 'Deeper nesting is an error',
    }),
    maxErrors: count({
      group: 'Output',
      otherwise: undefined,
      min: 1,
      describe: 'Stop after this many bad lines',
    }),
    rejects: outputFile({
      group: 'Output',
      describe: 'Append the bad lines to FILE, as JSON with their place and code',
    }),
    json: flag({ group: 'Output', describe: 'Print problems as JSON lines, on standard error' }),
    ...readOptions,
    ...commonOptions,
  },
  notes: `
Valid lines go to standard output byte for byte (none with --quiet); each problem is one line on
standard error, FILE:LINE:COLUMN: message [code], columns in bytes. A last line without a newline
passes with a warning and gets its newline.

Codes of lines: truncated syntax multiple-values trailing-comma blank nul bom utf8 lone-surrogate
control-char nan duplicate-key too-deep python-repr, no-final-newline; not-object missing-field
not-unique schema shape duplicate-id too-many-lines too-large; of files: utf16 pretty-printed json-array
conflict-marker lfs-pointer gzip-truncated zstd-truncated min-records.

--as responses: what fanout-complete writes and trainers of draft models read; messages: a conversation
to train on; batch-input, batch-output: lines of OpenAI's batch files (at most 50,000 lines, 200 MB).

Exit code: 0 all lines are valid, 1 some are not, 2 wrong usage or a file that cannot be read or
written.
`,
  run: async (context, options, operands) => {
    const { validate } = await import('../src/app/validate/run.ts')
    return validate(context, options, operands)
  },
})

await main(command, import.meta.url)
