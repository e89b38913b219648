/** Buckets per factor of two, and in all: lengths up to 2^32. */
const PER_OCTAVE = 4
const BUCKETS = 32 * PER_OCTAVE + 1
/**
 * Where few answers have come so far, one that is x long is taken to have LINDY * x to come: each bucket
 * holds so much of an end beside those seen. Much more would bend the curve where many were seen.
 */
const FORESEEN = 0.2
const LINDY = 0.4
/** The run is over as likely as not when so many answers are open in the mean: exp(-ln 2) is a half. */
const AS_GOOD_AS_DONE = Math.LN2
/** Steps through a mean answer; they grow, since a tail may be long. */
const STEPS = 20

/** What is left of a run; lengths in tokens, in pieces of text, or in milliseconds of an open request. */
export interface WorkLeft {
  /** Records that no answer has begun for. */
  unsent: number
  /** How long each open answer is already. */
  open: readonly number[]
  /** What comes of one open answer in a second, and how many were open while it was measured. */
  speed: number
  slots: number
  /** The most that were open at one time. */
  most: number
}

/**
 * Lengths of answers, as the chance that an answer of some length ends there (a life table): finished
 * answers alone would be the short ones, so those still open count as far as they have come.
 */
export class AnswerLengths {
  #ended = new Float64Array(BUCKETS)
  /** How far answers went into the bucket in which they ended. */
  #inside = new Float64Array(BUCKETS)
  #count = 0

  add(length: number): void {
    const bucket = bucketOf(length)
    this.#count++
    this.#ended[bucket]!++
    this.#inside[bucket]! += length - boundOf(bucket)
  }

  /**
   * Milliseconds until the run is done; undefined while it cannot be told. Unsent answers are begun as
   * open ones make room. Then each goes on at its own speed, and the end is that of the longest: the
   * moment at which so few are still open in the mean that the run is over as likely as not.
   *
   * As their number falls, those left get faster: servers lie between one whose streams never do and
   * one whose rate never falls, and here the last one is at most twice as fast as among the most.
   */
  timeLeft({ unsent, open, speed, slots, most }: WorkLeft): number | undefined {
    if (this.#count === 0 || !(speed > 0 && slots > 0)) return undefined
    const curve = this.#curve(open)
    // All lengths are those of one answer; the last unsent one is begun after this much of it.
    const sent = (unsent * curve.mean) / slots
    const groups = groupsOf(open)
    const before = groups.map(({ length }) => curve.hazard(length))
    const stillOpen = (after: number): number => {
      let sum = 0
      for (const [index, { length, count }] of groups.entries()) {
        sum += count * Math.exp(before[index]! - curve.hazard(length + after))
      }
      if (unsent === 0) return sum
      return sum + (unsent / sent) * (curve.area(after) - curve.area(after - sent))
    }
    let seconds = sent / speed
    let step = curve.mean / STEPS
    for (let after = sent; ; step *= 1 + 1 / STEPS) {
      const count = stillOpen(after)
      if (count <= AS_GOOD_AS_DONE) return seconds * 1000
      seconds += (step / speed) * ((count + most) / (slots + most))
      after += step
    }
  }

  #curve(open: readonly number[]): SurvivalCurve {
    const inside = this.#inside.slice()
    const left = this.#ended.slice()
    for (const length of open) {
      const bucket = bucketOf(length)
      left[bucket]!++
      inside[bucket]! += length - boundOf(bucket)
    }
    const hazards = new Float64Array(BUCKETS)
    let beyond = 0
    for (let bucket = BUCKETS - 1; bucket >= 0; bucket--) {
      const from = boundOf(bucket)
      const through = inside[bucket]! + beyond * (boundOf(bucket + 1) - from)
      const foreseen = FORESEEN * LINDY * Math.max(1, from)
      hazards[bucket] = (this.#ended[bucket]! + FORESEEN) / (through + foreseen)
      beyond += left[bucket]!
    }
    return new SurvivalCurve(hazards)
  }
}

/** The share of answers that are longer than a length, by the chance of an end at each. */
class SurvivalCurve {
  #hazards: Float64Array
  /** At the lower bound of each bucket: the hazard so far, and the integral of the survival. */
  #sums = new Float64Array(BUCKETS + 1)
  #areas = new Float64Array(BUCKETS + 1)

  constructor(hazards: Float64Array) {
    this.#hazards = hazards
    for (const [bucket, hazard] of hazards.entries()) {
      const width = boundOf(bucket + 1) - boundOf(bucket)
      this.#sums[bucket + 1] = this.#sums[bucket]! + hazard * width
      this.#areas[bucket + 1] = this.#areas[bucket]! + this.#part(bucket, width)
    }
  }

  /** The length of an answer in the mean. */
  get mean(): number {
    return this.#areas[BUCKETS]!
  }

  /** The sum of the chances of an end up to a length; exp(-hazard) answers are longer. */
  hazard(length: number): number {
    const bucket = bucketOf(length)
    return this.#sums[bucket]! + this.#hazards[bucket]! * (length - boundOf(bucket))
  }

  /** The integral of the survival from 0 to a length. */
  area(length: number): number {
    const bucket = bucketOf(length)
    return this.#areas[bucket]! + this.#part(bucket, length - boundOf(bucket))
  }

  #part(bucket: number, width: number): number {
    const hazard = this.#hazards[bucket]!
    return (Math.exp(-this.#sums[bucket]!) * -Math.expm1(-hazard * width)) / hazard
  }
}

/**
 * Lengths of one bucket as so many of their mean: thousands of open answers would cost a bar that is
 * drawn anew five times a second a quarter of a core.
 */
function groupsOf(lengths: readonly number[]): { length: number; count: number }[] {
  const counts = new Float64Array(BUCKETS)
  const sums = new Float64Array(BUCKETS)
  for (const length of lengths) {
    const bucket = bucketOf(length)
    counts[bucket]!++
    sums[bucket]! += length
  }
  const groups: { length: number; count: number }[] = []
  for (const [bucket, count] of counts.entries()) {
    if (count > 0) groups.push({ length: sums[bucket]! / count, count })
  }
  return groups
}

function bucketOf(length: number): number {
  const bucket = length < 1 ? 0 : 1 + Math.floor(Math.log2(length) * PER_OCTAVE)
  return Math.min(bucket, BUCKETS - 1)
}

/** The lower bound of a bucket. */
function boundOf(bucket: number): number {
  return bucket === 0 ? 0 : 2 ** ((bucket - 1) / PER_OCTAVE)
}
