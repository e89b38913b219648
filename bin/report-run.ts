#!/usr/bin/env node
import { commonOptions, defineCommand, readOptions } from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import { flag, outputFile, text } from '../src/cli/option.ts'

export const command = defineCommand({
  name: 'report-run',
  summary: 'tell what a run did: lengths, times, failures, and what to set next time',
  usage: 'report-run [options] [FILE...]',
  examples: [
    'report-run raw_responses.jsonl --failures failures.jsonl',
    'report-run raw_responses.jsonl --trace trace.jsonl --html report.html',
    'report-run --json raw_responses.jsonl | jq .what_if',
  ],
  options: {
    failures: text({
      group: 'Input',
      metavar: 'FILE',
      describe: 'What fanout-complete --failures wrote',
    }),
    trace: text({
      group: 'Input',
      metavar: 'FILE',
      describe: 'What fanout-complete --trace wrote',
    }),
    ...readOptions,
    json: flag({ group: 'Output', describe: 'Write one JSON object instead of text' }),
    html: outputFile({
      group: 'Output',
      describe: 'Write one page with charts to FILE, too; it needs no network',
    }),
    ...commonOptions,
    stats: text({
      group: 'Input',
      metavar: 'FILE',
      describe: 'What fanout-complete --stats wrote',
    }),
  },
  notes: `
FILE holds records of fanout-complete, lines of batch output files, or bare completions. One pass,
and memory of 20 to 32 bytes an answer. Percentiles come within 5 %. Times need the record's timing (batch
lines have none): rates and open requests are those of answers that have it. Tokens a second are told as if
answers without usage were as long as the others. How many answers lack what is said.

A record with an answer is answered, whatever stands before or after it, in whatever order the files are;
one that failed twice is one. Records are told apart by their id. A line of an answer with an id that comes
twice, as in a file that is given twice, counts once; two answers to one record are two.

A total timeout kills the longest answers: the table tells, for 60 s to an hour, what share of these
answers it would have killed, and how much shorter those left would be in the mean. It holds for each
request: of a record of several turns the longest turn counts, where their times are told.

Lines that cannot be used are named on standard error and counted; the rest is reported. So are records
with a value that cannot be: a request of more than a year, a date before 2000, 1e308 tokens.

Exit code: 0 all well, 1 some lines could not be used, 2 wrong usage or a file that cannot be read or
written.
`,
  run: async (context, options, operands) => {
    const { reportRun } = await import('../src/app/report/run.ts')
    return reportRun(context, options, operands)
  },
})

await main(command, import.meta.url)
