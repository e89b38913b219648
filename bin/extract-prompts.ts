#!/usr/bin/env node
import {
  commonOptions,
  defineCommand,
  readOptions,
  shardNotes,
  shardOptions,
} from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import { choice, count, flag, list, number, outputFile, text } from '../src/cli/option.ts'
import { KEY_FIELDS } from '../src/core/key.ts'
import { TURN_MODES } from '../src/core/prompt-record.ts'
import { PROMPT_FIELDS, SYSTEM_FIELDS } from '../src/core/prompt-shape.ts'
import { ROW_PROBLEMS } from '../src/core/row-problem.ts'

const reasons = Object.entries(ROW_PROBLEMS)
  .map(([code, sentence]) => `  ${code.padEnd(16)} ${sentence}`)
  .join('\n')

export const command = defineCommand({
  name: 'extract-prompts',
  summary: 'turn the rows of a data set into records for fanout-complete',
  usage: 'extract-prompts [options] [FILE...]',
  examples: [
    'extract-prompts open-perfectblend/*.parquet --shuffle 7 --limit 25000 > questions.jsonl',
    "extract-prompts 'sharegpt/*.json.gz' --turns all --keep source | fanout-complete > answers.jsonl",
    'extract-prompts math.jsonl --prompt-field problem --samples 4 --rejects unusable.jsonl > q.jsonl',
  ],
  options: {
    turns: choice({
      group: 'Prompts',
      choices: TURN_MODES,
      otherwise: 'first',
      describe: 'What of a conversation is asked; see below',
    }),
    promptField: text({
      group: 'Prompts',
      metavar: 'FIELD',
      describe: 'The member that holds the prompt; dots reach inside',
      defaultText: `the first of ${PROMPT_FIELDS.join(', ')}`,
    }),
    keep: list({
      group: 'Prompts',
      metavar: 'FIELD,...',
      describe: 'Take these members along, byte for byte; dots reach inside',
    }),
    key: text({
      group: 'Prompts',
      metavar: 'FIELD',
      describe: 'The member that is the id; dots reach inside',
      defaultText: `the first of ${KEY_FIELDS.join(', ')}`,
    }),
    pathIds: flag({
      group: 'Prompts',
      describe: 'Make the ids of rows that have none from the path as given, not the file name',
    }),
    maxPromptChars: count({
      group: 'Choice',
      otherwise: undefined,
      min: 1,
      describe: 'Leave out longer prompts, all their messages counted, in characters',
    }),
    skipEmpty: flag({
      group: 'Choice',
      describe: 'Leave out empty prompts; without it they are unusable rows',
    }),
    sample: number({
      group: 'Choice',
      metavar: 'RATE',
      otherwise: undefined,
      describe: 'Take this share of the prompts, chosen by id and --seed: 0.1 is a tenth',
    }),
    seed: text({ group: 'Choice', metavar: 'SEED', describe: 'Another seed, another --sample' }),
    shuffle: text({
      group: 'Choice',
      metavar: 'SEED',
      describe: 'Put the prompts into a random order that only their ids and SEED decide',
    }),
    skip: count({ group: 'Choice', otherwise: 0, describe: 'Leave out the first N prompts' }),
    limit: count({
      group: 'Choice',
      otherwise: undefined,
      min: 1,
      describe: 'Take N prompts at most, then stop reading',
    }),
    samples: count({
      group: 'Choice',
      otherwise: 1,
      min: 1,
      defaultText: '1',
      describe: 'Write N records of each prompt, with the ids x#0, x#1, ...',
    }),
    rejects: outputFile({
      group: 'Output',
      describe: 'Append the rows that cannot be used to FILE, as JSON with place and reason',
    }),
    ...shardOptions,
    ...readOptions,
    ...commonOptions,
  },
  notes: `
Reads JSONL, one JSON array, and Parquet (from files, row by row), told apart by their first bytes;
JSONL and arrays also compressed with gzip or zstd. FILE may be a quoted glob.

A row is a conversation (a list of turns with role and content, from and value, or of texts that
alternate, the user's first), a list of the user's turns (turns), or a text; instruction and input
are joined by an empty line; ${SYSTEM_FIELDS.join(' or ')} beside a prompt is its system message.
Roles: human and user; gpt, assistant, chatgpt, bing, bard, model; system, developer; tool, function.

--turns first  the first user turn, with the system messages before it
        all    every user turn, to be asked one after the other; old answers are dropped
        keep   the conversation up to its last user turn, old answers as context

Records: {"id","messages":[...]} for a conversation; {"id","prompt"} for a text and for the first of
plain user turns; {"id","turns":[...]} for --turns all, with "system" beside it where the row has a
system message. Messages that the API takes as they are pass byte for byte, tool calls and images
too; members of turns that servers do not know are left out.

The id is the row's own, as it is written. A row without one gets NAME:ROW: the file's name without
its folders and without .gz or .zst (stdin for standard input), and the number of the line, element
or row, from 1. It is the same on every machine, as are --sample and --shuffle.

Order of choice: rows that cannot be used, --skip-empty, --max-prompt-chars, --sample, --shuffle,
--skip, --limit, --samples, --shard: N tasks write together what one without --shard writes. A row
that cannot be used is named by the shard that its bytes hash to. --shuffle reads everything first;
with --limit it keeps only so many prompts, else at most 32 MiB of them in memory and the rest in
files under $TMPDIR.

A JSON array with damage in it goes on at the next element: a broken element is named with its row
and the byte where it breaks, and every whole one around it is given. An object behind damage counts
as an element where it is whole, stands apart by a comma, and has the keys, or the first key, of one
of the eight elements before, none of which has such an object inside it. Where only a word or a
comma is wrong, the element ends with its brackets. Two elements without a comma between them are
both given, and so is what follows in another array; that is told too (missing-comma,
multiple-values), and is exit code 1.

Rows that cannot be used are named on standard error, the first 100 of a kind in a file, and counted
by reason:
${reasons}
and the codes of validate-jsonl for rows that are no JSON, parquet-damaged for rows that cannot be
read. A file in which no row has a known field (no-shape), or no line is JSON (not-jsonl), is named once,
exit code 2; its first hundred rows tell.

${shardNotes}

--stats: rows = prompts + rejected + left_out; with --shard, prompts * samples = records +
other_shards, and unusable rows of other shards are left_out. In --rejects, line is the number of the row; offset,
of Parquet, the number of rows before it.

Exit code: 0 all well, 1 rows or files were damaged or unusable, 2 trouble.
`,
  run: async (context, options, operands) => {
    const { extract } = await import('../src/app/extract/run.ts')
    return extract(context, options, operands)
  },
})

await main(command, import.meta.url)
