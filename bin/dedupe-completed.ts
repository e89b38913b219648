#!/usr/bin/env node
import {
  commonOptions,
  defineCommand,
  readOptions,
  shardNotes,
  shardOptions,
} from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import { flag, list, text, texts } from '../src/cli/option.ts'
import { SHORTCOMINGS } from '../src/core/completed.ts'
import { KEY_FIELDS } from '../src/core/key.ts'

export const command = defineCommand({
  name: 'dedupe-completed',
  summary: 'pass on the records that have no answer yet',
  usage: 'dedupe-completed --completed FILE [--completed FILE]... [options] [FILE...]',
  examples: [
    'dedupe-completed --completed raw_responses.jsonl questions.jsonl | fanout-complete >> raw_responses.jsonl',
    "dedupe-completed --completed 'raw.*.jsonl' --redo length questions.jsonl > left.jsonl",
    'dedupe-completed --completed done.jsonl --key metadata.id questions.jsonl',
  ],
  options: {
    completed: texts({
      group: 'Keys',
      metavar: 'FILE',
      describe: 'A file of answers, or a quoted glob of them; may be given several times',
    }),
    key: text({
      group: 'Keys',
      metavar: 'FIELD',
      describe: 'The member that names a record; dots reach inside',
      defaultText: `the first of ${KEY_FIELDS.join(', ')}`,
    }),
    multiset: flag({
      group: 'Keys',
      describe: 'Pass repeated keys until as many are completed as the input holds',
    }),
    redo: list({
      group: 'Keys',
      metavar: 'WHY,...',
      choices: SHORTCOMINGS,
      describe: `Answers that count as none: ${SHORTCOMINGS.join(', ')}`,
    }),
    ...shardOptions,
    ...readOptions,
    ...commonOptions,
  },
  notes: `
A key is compared as text after decoding JSON escapes: 1 and "1" are the same, 1 and 1.0 are not. A
record without any of these members has the SHA-256 of its line as key; in files of answers only a
member counts. A record of fanout-complete made with --key is found by its id.

Not completed: lines that do not parse, a torn last line, a status other than success or completed,
a non-null error, a response.status_code outside 200-299. Files of answers are read to the size they
have at the start, so >> onto the same file in the same pipeline is safe. A missing one counts as
empty, with a warning; one without a single usable record ends the run, exit code 2. Blank input
lines are dropped.

${shardNotes}

--stats counts records = passed + completed + repeated + invalid + other_shards.

Exit code: 0 all well, 1 lines were unusable or a key stands for different records, 2 trouble.
`,
  run: async (context, options, operands) => {
    const { dedupe } = await import('../src/app/dedupe.ts')
    return dedupe(context, options, operands)
  },
})

await main(command, import.meta.url)
