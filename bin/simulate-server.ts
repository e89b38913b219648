#!/usr/bin/env node
import { commonOptions, defineCommand } from '../src/cli/command.ts'
import { main } from '../src/cli/main.ts'
import { choice, count, duration, flag, number, text, texts } from '../src/cli/option.ts'
import { SERVER_PROFILES } from '../src/simulator/profiles.ts'

const profiles = Object.entries(SERVER_PROFILES)
  .map(([name, { summary }]) => `  ${name.padEnd(12)} ${summary}`)
  .join('\n')

export const command = defineCommand({
  name: 'simulate-server',
  summary: 'an OpenAI-compatible server that behaves like a busy vLLM, without a GPU',
  usage: 'simulate-server [options]',
  examples: [
    'simulate-server --port 8000 --speed 100          # a hundred times faster than life',
    'simulate-server --profile story --speed 100      # a server as people have it',
    'simulate-server --fault 503:2% --fault reset:1% --fault stall:1%',
    'simulate-server --port 0 --outage 30s+10s        # dead for 30 s, 10 s after the start',
  ],
  options: {
    port: count({
      group: 'Server',
      otherwise: 8000,
      defaultText: '8000',
      describe: 'Port; 0: any free one',
    }),
    host: text({
      group: 'Server',
      metavar: 'ADDRESS',
      defaultText: '127.0.0.1',
      describe: 'Address to listen on',
    }),
    model: text({
      group: 'Server',
      metavar: 'NAME',
      defaultText: 'simulated',
      describe: 'The one model served',
    }),
    apiKeyFile: text({ group: 'Server', metavar: 'FILE', describe: 'Require the key in FILE' }),
    speed: number({
      group: 'Server',
      otherwise: 1,
      defaultText: '1',
      describe: "Run the server's clock so many times faster",
    }),
    seed: count({
      group: 'Server',
      otherwise: 0,
      defaultText: '0',
      describe: 'Seed of lengths and texts: the same seed and prompt give the same answer',
    }),
    keepAlive: duration({
      group: 'Server',
      otherwise: 5000,
      defaultText: '5s',
      describe: 'Close idle connections after this, as uvicorn does',
    }),
    sseKeepAlive: duration({
      group: 'Server',
      otherwise: 0,
      defaultText: 'off',
      describe: 'Send a comment line in silent streams so often',
    }),

    profile: text({
      group: 'Scheduler',
      metavar: 'NAME',
      describe:
        'A server as people have it, see below; the options here and under Answers override it',
    }),
    maxNumSeqs: count({
      group: 'Scheduler',
      otherwise: undefined,
      defaultText: '256',
      describe: 'Sequences that run at once; the rest wait',
    }),
    peakTokensPerSecond: number({
      group: 'Scheduler',
      otherwise: undefined,
      defaultText: '1000',
      describe: 'Decode rate of an infinite batch, shared by all',
    }),
    halfBatch: number({
      group: 'Scheduler',
      otherwise: undefined,
      defaultText: '32',
      describe: 'The batch that reaches half of that rate',
    }),
    prefillTokensPerSecond: number({
      group: 'Scheduler',
      otherwise: undefined,
      defaultText: '20000',
      describe: 'Prompt tokens per second',
    }),
    prefillChunk: count({
      group: 'Scheduler',
      otherwise: undefined,
      defaultText: '8192',
      describe: 'Prompt tokens in one step',
    }),
    kvCacheTokens: count({
      group: 'Scheduler',
      min: 1,
      otherwise: undefined,
      defaultText: 'unlimited',
      describe: 'KV cache; where it is full, sequences are preempted',
    }),
    priorityScheduling: flag({ group: 'Scheduler', describe: 'Accept priority in requests' }),

    meanTokens: number({
      group: 'Answers',
      otherwise: undefined,
      defaultText: '1263',
      describe: 'Mean tokens of an answer',
    }),
    maxTokens: count({
      group: 'Answers',
      otherwise: undefined,
      defaultText: '8000',
      describe: 'Tokens of an answer at most',
    }),
    lengthSigma: number({
      group: 'Answers',
      otherwise: undefined,
      defaultText: '0.9',
      describe: 'Spread of the lengths (lognormal); 0: all alike',
    }),
    reasoningShare: number({
      group: 'Answers',
      otherwise: undefined,
      defaultText: '0.4',
      describe: 'Mean share of reasoning in an answer',
    }),
    reasoningField: choice({
      group: 'Answers',
      choices: ['reasoning', 'reasoning_content', 'both'],
      otherwise: 'reasoning',
      describe: 'Its name',
    }),

    fault: texts({
      group: 'Faults',
      metavar: 'NAME:RATE',
      describe: 'Let this share of requests fail; may be given several times',
    }),
    faultSeed: count({
      group: 'Faults',
      otherwise: 0,
      defaultText: '0',
      describe: 'Seed of which requests fail',
    }),
    outage: texts({
      group: 'Faults',
      metavar: 'LENGTH+START',
      describe: 'Be dead for LENGTH, START after the start; may be given several times',
    }),
    ...commonOptions,
  },
  notes: `
All durations are the server's own time: with --speed 100 an answer of 60 s takes 0.6 s, and
fanout-complete --clock-speed 100 matches it. The URL is printed on standard output.

POST /v1/chat/completions, /v1/completions, /v1/embeddings, /v1/responses; GET /v1/models, /health,
/metrics (vLLM's names), /version, /stats (tokens generated, delivered and wasted, peak concurrency).

Profiles (docs/simulator.md has the figures, their sources, and what they leave out):
${profiles}

Faults: an HTTP status (503, 429 with Retry-After, ...), hang, stall, reset, cut, garbage, html,
in-band-error, no-done, no-finish, no-choices, empty, abort, slow. Which requests are hit depends on
the seed, the prompt and the attempt, so a run can be repeated.

Runs until a signal comes; exit code 130, 143 or 129 then, 2 for wrong usage.
`,
  run: async (
    context,
    { fault, outage, apiKeyFile, keepAlive, sseKeepAlive, ...rest },
    operands,
  ) => {
    const { readSecret } = await import('../src/files/secret.ts')
    const { simulate } = await import('../src/app/simulate.ts')
    const key = apiKeyFile === undefined ? {} : { apiKey: readSecret(apiKeyFile) }
    return simulate(
      context,
      {
        ...rest,
        ...key,
        keepAliveMs: keepAlive,
        sseKeepAliveMs: sseKeepAlive,
        faults: fault,
        outages: outage,
      },
      rest.stats,
      operands,
    )
  },
})

await main(command, import.meta.url)
