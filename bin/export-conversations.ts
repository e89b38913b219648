#!/usr/bin/env node
import { TOKEN_MODES } from '../src/app/export/options.ts'
import { commonOptions, defineCommand, readOptions } from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import { choice, count, flag, list, outputFile, text } from '../src/cli/option.ts'
import { EXPORT_FORMS } from '../src/core/export-form.ts'
import { REASONING_MODES } from '../src/core/message-writer.ts'
import { LEFT_OUT } from '../src/core/trainer-rules.ts'

const reasons = Object.entries(LEFT_OUT)
  .map(([code, sentence]) => `  ${code.padEnd(14)} ${sentence}`)
  .join('\n')

export const command = defineCommand({
  name: 'export-conversations',
  summary: 'turn answers into the files that trainers read',
  usage: 'export-conversations --to FORM [options] [FILE...]',
  examples: [
    'export-conversations --to specforge --only stop raw_responses.jsonl > train.jsonl',
    'export-conversations --to parquet -o data.parquet --split 95:5 raw_responses.jsonl',
    'export-conversations --to messages --reasoning inline answers.jsonl | shuf > sft.jsonl',
  ],
  options: {
    to: text({ group: 'Form', metavar: 'FORM', describe: `One of ${EXPORT_FORMS.join(', ')}` }),
    reasoning: choice({
      group: 'Form',
      choices: ['default', ...REASONING_MODES],
      otherwise: 'default',
      describe: 'Keep reasoning as a member, drop it, or put it into the content',
    }),
    thinkTags: text({
      group: 'Form',
      metavar: 'OPEN,CLOSE',
      describe: 'What goes around reasoning in the content; \\n is a line feed',
      defaultText: '<think>,</think>',
    }),
    reasoningTurns: flag({
      group: 'Form',
      describe: 'A row for each answer of a conversation, with the ids x#turn0, x#turn1, ...',
    }),
    tokenIds: choice({
      group: 'Form',
      choices: TOKEN_MODES,
      otherwise: 'auto',
      describe: 'For speculators: write pre-tokenised rows where token ids were recorded',
    }),
    only: list({
      group: 'Choice',
      metavar: 'FINISH,...',
      describe: 'Only answers whose turns all ended so: stop drops those that were cut',
    }),
    minChars: count({
      group: 'Choice',
      otherwise: 0,
      describe: 'Leave out answers with fewer characters of content',
    }),
    keepDuplicates: flag({
      group: 'Choice',
      describe: 'Write conversations that were there before, too',
    }),
    output: outputFile({
      group: 'Output',
      short: 'o',
      describe: 'Write FILE anew; it comes into its place when it is whole',
    }),
    split: text({
      group: 'Output',
      metavar: 'TRAIN:EVAL',
      describe: 'Write two files, the records in this proportion: 95:5',
    }),
    seed: text({ group: 'Output', metavar: 'SEED', describe: 'Another seed, another --split' }),
    ...readOptions,
    ...commonOptions,
  },
  notes: `
Reads records of fanout-complete, of other tools with conversations or messages, and lines of batch
output files. Messages that are in the trainer's form already pass byte for byte; ids become strings.

  specforge     {"id","status":"success","conversations":[...]}, reasoning in reasoning_content
  deepspec      the same, reasoning in thinking
  speculators   {"id","conversations":[...]}, or {"id","primary_id","input_ids","loss_mask",...}
  modelopt      {"id","messages":[...]}
  messages      the same
  alpaca        {"id","instruction","input","output"}, with system and history where there are any
  openai-batch  lines of a batch output file
  parquet       id, and conversations as a list of role, content, reasoning_content

specforge, deepspec, alpaca and parquet take text alone: roles alternate, the user first, no turn is
empty. The others take tool calls and content parts too; all want an answer that is not empty.
docs/trainers.md tells the rules of each trainer.

--reasoning is keep by default, for alpaca drop. inline puts OPEN, the reasoning and CLOSE before the
content. --reasoning-turns makes a row of a conversation up to each of its answers, with the
reasoning of that answer alone. --token-ids auto: if the first row that is written has token ids, all
rows are pre-tokenised, and records without them are left out; a file never has both kinds.

--split goes by a hash of the id (without a #N of samples at its end) and --seed: the same records
are always in the same part. -o data.jsonl writes data.train.jsonl and data.eval.jsonl; {split} in
the name stands for the part instead.

Left out, and counted by reason on standard error and in --stats:
${reasons}

--stats: records = exported + left_out + invalid.

Exit code: 0 all well, 1 lines are no JSON or no records of answers, 2 trouble. A file in which no line is
JSON (not-jsonl), or none a record of answers (no-shape), is trouble, named once.
`,
  run: async (context, options, operands) => {
    const { exportConversations } = await import('../src/app/export/run.ts')
    const thinkTags = options.thinkTags ?? '<think>,</think>'
    return exportConversations(context, { ...options, thinkTags }, operands)
  },
})

await main(command, import.meta.url)
