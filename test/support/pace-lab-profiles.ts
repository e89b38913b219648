import type { Profile } from './pace-lab.ts'

/** The story's server: a model of a trillion parameters, 400 to 600 tokens a second. */
const STORY = { slots: 256, peak: 700, half: 32 }

export const PROFILES: readonly Profile[] = [
  { name: 'knee 8', servers: [{ slots: 8, peak: 600, half: 8 }] },
  { name: 'knee 64', servers: [{ slots: 64, peak: 2000, half: 32 }] },
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
  { name: 'halved and given back', servers: [{ slots: 64, peak: 2000, half: 32 }], halved: true },
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
]

export function profileOf(name: string): Profile {
  const profile = PROFILES.find((one) => one.name === name)
  if (profile === undefined) throw new Error(`no such profile: ${name}`)
  return profile
}
