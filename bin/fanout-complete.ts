#!/usr/bin/env node
import {
  commonOptions,
  defineCommand,
  readOptions,
  shardNotes,
  shardOptions,
} from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import {
  choice,
  count,
  countOr,
  duration,
  flag,
  list,
  number,
  outputFile,
  percent,
  size,
  text,
  texts,
} from '../src/cli/option.ts'
import { failureCodes } from '../src/core/failure.ts'
import { KEY_FIELDS } from '../src/core/key.ts'

export const command = defineCommand({
  name: 'fanout-complete',
  summary: 'send records to an OpenAI-compatible server, many at a time, and write every answer',
  usage: 'fanout-complete [options] [FILE...]',
  examples: [
    'fanout-complete questions.jsonl -o raw_responses.jsonl --resume',
    'dedupe-completed --completed out.jsonl questions.jsonl | fanout-complete -c 64 >> out.jsonl',
    'fanout-complete --url http://gpu7:8000/v1 --max-tokens 8000 --failures failures.jsonl q.jsonl > a.jsonl',
    'fanout-complete --completed a.jsonl failures.jsonl >> a.jsonl        # ask again what failed',
  ],
  options: {
    url: texts({
      group: 'Server',
      metavar: 'URL',
      describe:
        'Base URL of the API; several share the work, the one with the fewest open requests first',
      defaultText: '$OPENAI_BASE_URL, else http://127.0.0.1:8000/v1',
    }),
    model: text({
      group: 'Server',
      metavar: 'NAME',
      describe: 'The model to ask',
      defaultText: 'the only one that GET /models lists',
    }),
    apiKeyFile: text({
      group: 'Server',
      metavar: 'FILE',
      describe: 'Read the API key from FILE',
      defaultText: '$OPENAI_API_KEY',
    }),
    header: texts({
      group: 'Server',
      metavar: "'Name: value'",
      describe: 'Send this header; may be given several times; no secrets here',
    }),
    headerFile: text({
      group: 'Server',
      metavar: 'FILE',
      describe: 'Send the headers in FILE, one a line, Authorization too',
    }),
    caFile: text({
      group: 'Server',
      metavar: 'FILE',
      describe: 'Trust the certificate authorities in this PEM file',
    }),

    endpoint: choice({
      group: 'Requests',
      choices: ['chat', 'completions'],
      otherwise: 'chat',
      describe: 'Which API is asked (batch lines name their own)',
    }),
    promptField: text({
      group: 'Requests',
      metavar: 'FIELD',
      describe: 'The member that is the prompt; dots reach inside',
    }),
    system: text({
      group: 'Requests',
      describe: 'Begin conversations with this system message, unless they have one',
    }),
    send: list({
      group: 'Requests',
      metavar: 'FIELD,...',
      describe: "Send these members of the record along, such as 'tools'; they go before options",
    }),
    historyReasoning: choice({
      group: 'Requests',
      choices: ['drop', 'keep'],
      otherwise: 'drop',
      describe: 'Of turns: whether the reasoning of earlier ones is sent back',
    }),
    returnTokenIds: flag({
      group: 'Requests',
      describe: 'Ask vLLM for token ids and record them as prompt_token_ids and token_ids',
    }),
    key: text({
      group: 'Requests',
      metavar: 'FIELD',
      describe: 'The member that names a record; dots reach inside',
      defaultText: `the first of ${KEY_FIELDS.join(', ')}`,
    }),

    maxTokens: count({
      group: 'Sampling',
      otherwise: undefined,
      min: 1,
      describe: 'Tokens of an answer at most',
    }),
    temperature: number({
      group: 'Sampling',
      otherwise: undefined,
      min: 0,
      describe: 'Temperature',
    }),
    topP: number({ group: 'Sampling', otherwise: undefined, min: 0, describe: 'Nucleus sampling' }),
    seed: count({ group: 'Sampling', otherwise: undefined, describe: 'Seed of the sampling' }),
    param: texts({
      group: 'Sampling',
      metavar: 'KEY=JSON',
      describe:
        'Any other member of the request body; dots reach inside; may be given several times',
    }),
    n: text({
      group: 'Sampling',
      hidden: true,
      describe: 'Refused: see extract-prompts --samples',
    }),
    noStream: flag({
      group: 'Sampling',
      describe: 'Ask for whole answers: then silence cannot be told from work',
    }),

    concurrency: countOr({
      group: 'Pace',
      short: 'c',
      word: 'auto',
      otherwise: 128,
      min: 1,
      defaultText: '128',
      describe: 'Requests open at a time; auto: found by itself, and followed, for each server',
    }),
    maxConcurrency: count({
      group: 'Pace',
      otherwise: 512,
      min: 1,
      defaultText: '512',
      describe: 'With auto: never more than this, for each server',
    }),
    rpm: count({
      group: 'Pace',
      otherwise: undefined,
      min: 1,
      describe: 'Requests in any minute at most, over all servers',
    }),
    tpm: count({
      group: 'Pace',
      otherwise: undefined,
      min: 1,
      describe:
        'Tokens, of prompts and answers, in any minute at most; estimated where none are told',
    }),
    connectTimeout: duration({
      group: 'Pace',
      otherwise: 10_000,
      defaultText: '10s',
      describe: 'Give up a connection that is not made by then (0: never)',
    }),
    firstTokenTimeout: duration({
      group: 'Pace',
      otherwise: 1_800_000,
      defaultText: '30m',
      describe: 'Give up a request without its first token (0: never)',
    }),
    idleTimeout: duration({
      group: 'Pace',
      otherwise: 300_000,
      defaultText: '5m',
      describe: 'Give up an answer after this silence (0: never)',
    }),
    timeout: duration({
      group: 'Pace',
      otherwise: 0,
      defaultText: 'off',
      describe: 'Give up a request after this time in all, which cuts the longest answers first',
    }),
    retries: count({
      group: 'Pace',
      otherwise: 5,
      defaultText: '5',
      describe:
        'Further attempts, after pauses of 1 s to 60 s with full jitter or as the server says',
    }),
    retryBudget: percent({
      group: 'Pace',
      otherwise: 0.5,
      defaultText: '50%',
      describe:
        'Retries per request over the run; more of them wait, so that a sick server is not buried',
    }),
    maxAnswer: size({
      group: 'Pace',
      otherwise: 128 * 1024 * 1024,
      min: 1,
      defaultText: '128M',
      describe: 'Give up an answer of more bytes than this, decompressed',
    }),
    maxOutage: duration({
      group: 'Pace',
      otherwise: 1_800_000,
      defaultText: '30m',
      describe: 'Wait so long for a server that is out; no attempt is spent meanwhile',
    }),
    haltOnFailures: text({
      group: 'Pace',
      metavar: 'N|P%',
      describe: 'End the run when so many records have failed, exit code 1',
    }),
    drain: duration({
      group: 'Pace',
      otherwise: 30_000,
      defaultText: '30s',
      describe: 'After TERM or HUP, let open requests finish for so long',
    }),
    drainOn: choice({
      group: 'Pace',
      choices: ['none', 'USR1', 'USR2'],
      otherwise: 'none',
      describe: 'Take this signal for TERM, as schedulers send it before they kill',
    }),
    clockSpeed: number({
      group: 'Pace',
      otherwise: 1,
      min: 0.001,
      describe: "Divide all durations by this, to match simulate-server's --speed",
    }),

    output: outputFile({
      group: 'Output',
      short: 'o',
      describe: 'Append answers to FILE, locked and synced, instead of standard output',
    }),
    resume: flag({
      group: 'Output',
      describe: 'FILE exists: mend its torn tail, skip what it answers and keys that come twice',
    }),
    completed: texts({
      group: 'Output',
      metavar: 'FILE',
      describe:
        'Skip what these files answer too: a file or a quoted glob; may be given several times',
    }),
    takeLock: flag({
      group: 'Output',
      describe: "Another host's lock on FILE: take it at once, its run is gone for sure",
    }),
    overwrite: flag({ group: 'Output', describe: 'FILE exists: begin anew' }),
    onChanged: choice({
      group: 'Output',
      choices: ['stop', 'keep', 'redo'],
      otherwise: 'stop',
      describe: 'An answer there is to another request than the record; redo leaves it too',
    }),
    sync: duration({
      group: 'Output',
      otherwise: 5000,
      defaultText: '5s',
      describe: 'Sync FILE to the disk so often (0: at the end only)',
    }),
    failures: outputFile({
      group: 'Output',
      describe: 'Append a record for each failure to FILE, which is input again',
    }),
    keepOrder: flag({
      group: 'Output',
      describe: 'Write answers in the order of the input; a slow one holds the others up',
    }),
    onLength: choice({
      group: 'Output',
      choices: ['keep', 'fail'],
      otherwise: 'keep',
      describe: 'An answer that the token limit cut',
    }),
    ...shardOptions,
    ...readOptions,

    progressEvery: duration({
      group: 'Messages',
      otherwise: 10_000,
      defaultText: '10s',
      describe: 'Print progress so often where there is no terminal (0: never)',
    }),
    total: count({
      group: 'Messages',
      otherwise: undefined,
      describe: 'Records to expect where the input is a pipe',
    }),
    trace: outputFile({
      group: 'Messages',
      describe: "Append the run's state to FILE each second, as JSON lines (report-run reads it)",
    }),
    ...commonOptions,
  },
  notes: `
Records, one object a line; the first of these members that is not null decides: messages (sent as they
are), turns (user messages, answered one after the other; a text in "system" beside them comes first),
prompt (one user message), body (an OpenAI batch line, answered with a batch line). A record of --failures
is asked again under its id, with all its turns: it does not say which model its finished turns came of.

An answer is {"id","status":"success","conversations","finish_reason","model","usage","attempts",
"timing","request_hash","input"}, one a line, never torn by us but by a kill. A failure is a line
ERROR sample ... on standard error and a record in --failures, never on standard output.

Timeouts count from dispatch, never while this process did not run. After a refusal, reset, 502 or 503
the server's /health is asked: where it is not well, the run waits and no attempt is spent. 401, 403,
404 and redirects end the run while nothing has succeeded, but 404 of a batch line, whose url and model are its
own. First Ctrl-C: open requests finish, and conversations with them to their last turn; second: at
once. TERM, HUP and the signal of --drain-on: they finish within --drain. USR1: a progress line.

${shardNotes}

--stats counts records = answered + failed + skipped + left + other_shards.

Codes of failures:
${failureCodes()}

Exit code: 0 every record is answered or nobody reads on (| head), 1 some failed, 2 wrong usage, no
server or an output that cannot be written; 130, 143, 129 after INT, TERM (and --drain-on), HUP.
`,
  run: async (context, options, operands) => {
    const { fanout } = await import('../src/app/fanout/run.ts')
    return fanout(context, options, operands)
  },
})

await main(command, import.meta.url)
