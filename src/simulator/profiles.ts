import type { SimulatorOptions } from './options.ts'

/** What a profile may set: the machine, and where a run is modelled, its answers. */
type ProfileOptions = Pick<
  SimulatorOptions,
  | 'maxNumSeqs'
  | 'peakTokensPerSecond'
  | 'halfBatch'
  | 'prefillTokensPerSecond'
  | 'kvCacheTokens'
  | 'meanTokens'
  | 'maxTokens'
  | 'lengthSigma'
>

interface ServerProfile {
  /** One line for the help text. */
  readonly summary: string
  readonly options: ProfileOptions
}

/** Servers as people have them. docs/simulator.md says where each figure is from and what is left out. */
export const SERVER_PROFILES: Readonly<Record<string, ServerProfile>> = {
  story: {
    summary: 'a model of a trillion parameters, 64 slots: the run that started this project',
    options: {
      maxNumSeqs: 64,
      peakTokensPerSecond: 1_100,
      halfBatch: 32,
      prefillTokensPerSecond: 20_000,
      meanTokens: 1_650,
      maxTokens: 8_000,
      lengthSigma: 0.9,
    },
  },
  'llama-cpp': {
    summary: 'a small model on a laptop, 4 slots',
    options: {
      maxNumSeqs: 4,
      peakTokensPerSecond: 100,
      halfBatch: 3,
      prefillTokensPerSecond: 400,
      kvCacheTokens: 32_768,
    },
  },
  'rtx4090-7b': {
    summary: 'a 7B model on one card of 24 GB: the KV cache is full before the slots are',
    options: {
      maxNumSeqs: 256,
      peakTokensPerSecond: 2_070,
      halfBatch: 35,
      prefillTokensPerSecond: 7_000,
      kvCacheTokens: 45_000,
    },
  },
  'h100-8b': {
    summary: 'an 8B model on one H100, 256 slots',
    options: {
      maxNumSeqs: 256,
      peakTokensPerSecond: 18_000,
      halfBatch: 72,
      prefillTokensPerSecond: 30_000,
      kvCacheTokens: 410_000,
    },
  },
  'h100x2-70b': {
    summary: 'a 70B model in FP8 on two H100, 256 slots',
    options: {
      maxNumSeqs: 256,
      peakTokensPerSecond: 5_200,
      halfBatch: 100,
      prefillTokensPerSecond: 15_000,
      kvCacheTokens: 450_000,
    },
  },
  'b200x2-30b': {
    summary: 'a sparse 30B model on two B200, 1,024 slots',
    options: {
      maxNumSeqs: 1_024,
      peakTokensPerSecond: 23_000,
      halfBatch: 118,
      prefillTokensPerSecond: 200_000,
    },
  },
}
