import type { Profile } from './pace-lab-profile.ts'

const KNEE_64 = { slots: 64, peak: 2000, half: 32 }
const MINUTE = 60
/** Requests a minute of a provider that counts them: less than its server would bear. */
const RPM = 40

/** Profiles that the controller was not made with. */
export const FURTHER: readonly Profile[] = [
  { name: 'knee 2', servers: [{ slots: 2, peak: 80, half: 1 }], requests: 2000 },
  { name: 'knee 12', servers: [{ slots: 12, peak: 700, half: 8 }] },
  {
    name: 'knee 1,900',
    servers: [{ slots: 1900, peak: 40_000, half: 500, prefill: 200_000 }],
    requests: 20_000,
  },
  { name: '429 above 20', servers: [{ ...KNEE_64, refuseAbove: 20 }] },
  {
    name: '429 above 20, Retry-After',
    servers: [{ ...KNEE_64, refuseAbove: 20, retryAfter: 5 }],
  },
  {
    name: '40 a minute, headers',
    servers: [{ ...KNEE_64, perMinute: RPM, rateHeaders: true, retryAfter: 'rest' }],
    requests: 3000,
  },
  {
    name: '40 a minute, Retry-After',
    servers: [{ ...KNEE_64, perMinute: RPM, retryAfter: 'rest' }],
    requests: 3000,
  },
  {
    name: '40 a minute, Retry-After 5',
    servers: [{ ...KNEE_64, perMinute: RPM, retryAfter: 5 }],
    requests: 3000,
  },
  {
    name: '40 a minute, bare 429',
    servers: [{ ...KNEE_64, perMinute: RPM }],
    requests: 3000,
  },
  {
    name: 'a fifth for 2 min, thrice',
    servers: [{ slots: 100, peak: 3000, half: 32 }],
    capacity: (_done, second) =>
      second < 80 * MINUTE && second % (20 * MINUTE) >= 18 * MINUTE ? 0.2 : 1,
  },
  {
    name: 'restarted, 30 s down',
    servers: [KNEE_64],
    down: (second) => second >= 20 * MINUTE && second < 20 * MINUTE + 30,
  },
  {
    name: 'two endpoints 1:10',
    servers: [
      { slots: 16, peak: 500, half: 8 },
      { slots: 160, peak: 5000, half: 80 },
    ],
  },
  {
    name: 'cached prefixes',
    servers: [{ slots: 96, peak: 4000, half: 48, prefill: 12_000 }],
    promptTokens: (draw) => (draw < 0.8 ? 50 : 6000),
  },
  { name: '2 tokens a second', servers: [{ slots: 48, peak: 160, half: 32 }], requests: 3000 },
  {
    name: 'Pareto',
    servers: [KNEE_64],
    answers: { of: (draw) => 300 / (1 - draw) ** (1 / 1.3), longest: 32_000 },
  },
  { name: '400 requests', servers: [KNEE_64], requests: 400 },
  { name: 'a gateway of 3 s', servers: [KNEE_64], delay: { mean: 3, sigma: 0.05 } },
  // Those of simulate-server whose KV cache is full before their slots are.
  {
    name: 'rtx4090-7b',
    servers: [{ slots: 256, peak: 2070, half: 35, prefill: 7000, kvCacheTokens: 45_000 }],
  },
  {
    name: 'h100-8b',
    servers: [{ slots: 256, peak: 18_000, half: 72, prefill: 30_000, kvCacheTokens: 410_000 }],
  },
  { name: 'two in a hundred hang', servers: [KNEE_64], hung: 0.02 },
  {
    name: '429 by chance',
    servers: [KNEE_64],
    answers: { mean: 50, sigma: 0.9, longest: 8000 },
    refused: 0.02,
  },
  {
    name: 'long prompts among short ones',
    servers: [{ ...KNEE_64, prefill: 1500 }],
    promptTokens: (draw) => (draw < 0.2 ? 10_000 : 100),
  },
  { name: 'jitter', servers: [KNEE_64], delay: { mean: 1, sigma: 1 } },
]
