/** Seeded, so that what a test found can be had again (mulberry32 by Tommy Ettinger, public domain). */
export function dice(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296
  }
}

/** The seed of this run: $SEED, or one of the clock's, which the test prints. */
export function newSeed(): number {
  return Number(process.env.SEED ?? Date.now() % 1_000_000)
}
