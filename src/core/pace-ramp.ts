/** Growth a second of the ramp: while the limit is small, and after that. */
const SMALL = 32
const QUICK = 1.5
const FACTOR = 1.25
/** Where a doubling gains less than this, so many seconds' worth of completions are a step at most. */
const FLATTENING = 0.5
const STEP_SECONDS = 20

/**
 * The next limit of a ramp.
 *
 * @param gain what the last doubling gained, as a share of itself
 * @param completions answers that end in a second: if all of a step had to wait, it would not be long
 */
export function nextOfRamp(limit: number, gain: number, completions: number): number {
  const step = Math.max(1, ((limit < SMALL ? QUICK : FACTOR) - 1) * limit)
  if (gain >= FLATTENING) return limit + step
  return limit + Math.min(step, Math.max(2, 0.04 * limit, STEP_SECONDS * completions))
}
