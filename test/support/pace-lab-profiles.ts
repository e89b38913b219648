import type { Profile } from './pace-lab-profile.ts'

/** The story's server: a model of a trillion parameters, 400 to 600 tokens a second. */
const STORY = { slots: 256, peak: 700, half: 32 }

const KNEE_64 = { slots: 64, peak: 2000, half: 32 }

export const PROFILES: readonly Profile[] = [
  { name: 'knee 8', servers: [{ slots: 8, peak: 600, half: 8 }] },
  { name: 'knee 64', servers: [KNEE_64] },
  { name: 'knee 256', servers: [{ slots: 256, peak: 6000, half: 64 }] },
  { name: 'knee 1,024', servers: [{ slots: 1024, peak: 20_000, half: 256, prefill: 100_000 }] },
  { name: '429 above 50', servers: [{ slots: 256, peak: 2000, half: 32, refuseAbove: 50 }] },
  {
    name: 'thrash past 90 of 400',
    servers: [{ slots: 400, peak: 3000, half: 32, thrashPast: 90 }],
  },
  {
    name: 'KV preemption',
    servers: [{ slots: 256, peak: 3000, half: 48, kvCacheTokens: 100_000, prefill: 8000 }],
  },
  {
    name: 'halved and given back',
    servers: [KNEE_64],
    capacity: (done) => (done >= 1 / 3 && done < 2 / 3 ? 0.5 : 1),
  },
  {
    name: 'two endpoints 1:3',
    servers: [
      { slots: 32, peak: 1000, half: 16 },
      { slots: 96, peak: 3000, half: 48 },
    ],
  },
  {
    name: 'beside 64 fixed',
    servers: [{ slots: 256, peak: 6000, half: 64 }],
    neighbour: 64,
  },
  { name: "the story's server", servers: [STORY] },
  {
    name: 'long prompts',
    servers: [{ slots: 128, peak: 6000, half: 64, prefill: 12_000 }],
    promptTokens: 3000,
  },
  { name: 'slow, knee 4', servers: [{ slots: 4, peak: 160, half: 2 }] },
  { name: 'no knee', servers: [{ slots: 4096, peak: 6000, half: 32 }] },
  {
    name: 'short answers',
    servers: [KNEE_64],
    promptTokens: 50,
    answers: { mean: 20, sigma: 0.5, longest: 200 },
  },
  {
    name: 'prompts of 8,000',
    servers: [{ slots: 64, peak: 3000, half: 32, prefill: 16_000 }],
    promptTokens: 8000,
    answers: { mean: 300, sigma: 0.7, longest: 2000 },
  },
  {
    name: 'heavy tail',
    servers: [KNEE_64],
    answers: { mean: 1263, sigma: 1.6, longest: 32_000 },
  },
  {
    name: 'down to a fifth and back',
    servers: [{ slots: 100, peak: 3000, half: 32 }],
    capacity: (done) => (done >= 1 / 3 && done < 1 / 2 ? 0.2 : 1),
  },
  { name: 'warming up', servers: [KNEE_64], speed: (second) => Math.min(1, 0.2 + second / 300) },
  { name: 'metrics 5 s old', servers: [KNEE_64], metricsAge: 5 },
  {
    name: "another model's queue",
    servers: [KNEE_64],
    told: (truth) => ({ ...truth, waiting: truth.waiting + 80 }),
  },
  {
    name: 'a queue that is not told',
    servers: [KNEE_64],
    told: (truth) => ({ ...truth, waiting: 0 }),
  },
  {
    name: 'a gauge that stands still',
    servers: [KNEE_64],
    told: (truth) => ({ ...truth, kvUse: 0.97 }),
  },
  { name: 'two of us', servers: [KNEE_64], neighbour: { auto: 0 } },
  { name: 'another of us comes', servers: [KNEE_64], neighbour: { auto: 600 } },
]

export function profileOf(name: string): Profile {
  const profile = PROFILES.find((one) => one.name === name)
  if (profile === undefined) throw new Error(`no such profile: ${name}`)
  return profile
}
