#!/usr/bin/env node
import { commonOptions, defineCommand, readOptions } from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import { flag, outputFile, text } from '../src/cli/option.ts'

export const command = defineCommand({
  name: 'repair-truncated',
  summary: 'make a damaged JSONL file whole again, and keep what is taken out',
  usage: 'repair-truncated [options] [FILE...]',
  examples: [
    'repair-truncated -i raw_responses.jsonl          # after a crash',
    'repair-truncated damaged.jsonl --removed removed.jsonl > whole.jsonl',
    'repair-truncated --tail -i raw_responses.jsonl   # only the end, in no time',
    'zcat damaged.jsonl.gz | repair-truncated | gzip > whole.jsonl.gz',
  ],
  options: {
    inPlace: text({
      group: 'Repair',
      short: 'i',
      metavar: 'SUFFIX',
      valueOptional: true,
      describe: 'Repair the files themselves; with SUFFIX (-i.bak) the old ones are kept',
    }),
    check: flag({ group: 'Repair', describe: 'Write nothing, exit 1 where a file is not clean' }),
    tail: flag({
      group: 'Repair',
      describe: 'Look only at the end of each file, and mend it there (with -i or --check)',
    }),
    removed: outputFile({
      group: 'Output',
      describe: 'Append the removed pieces to FILE, as JSON with their place and code',
      defaultText: 'with -i FILE.removed.jsonl beside each file',
    }),
    salvage: flag({
      group: 'Output',
      describe:
        'Also close torn records after their last whole member, marked "truncated":true; needs --salvaged',
    }),
    salvaged: outputFile({
      group: 'Output',
      describe: 'Append what --salvage makes to FILE: never mixed with whole records',
    }),
    ...readOptions,
    ...commonOptions,
  },
  notes: `
Valid lines are kept byte for byte. Blank lines, byte order marks and NULs around records are dropped,
a missing final newline is added, a torn last record is removed, {..}{..} on one line becomes two
lines. A record glued onto a torn one is split off only where records near it have the same keys.
Everything else that is no JSON is removed as a line: nothing is joined, converted or invented.

A file that is no damaged JSONL is refused, and nothing is written: UTF-16, pretty-printed JSON, a
JSON array, git conflict markers, an LFS pointer, no line that is JSON.

With -i a file is replaced as a whole or not at all; the removed pieces are on the disk before.

The counts of --stats: lines = kept (byte for byte) + unframed (NULs or a byte order mark taken off) +
split + framing (lines without a record) + torn (a last line cut off) + removed (as a whole).

Exit code: 0 nothing was removed but a torn last record, 1 something else was: look at it; 2 wrong
usage or a file that cannot be read or written.
`,
  run: async (context, options, operands) => {
    const { repair } = await import('../src/app/repair.ts')
    return repair(context, options, operands)
  },
})

await main(command, import.meta.url)
