/** PRIME64_1 and PRIME64_2 of the specification that xxh64.ts names. */
const PRIME_1: i64 = 0x9e3779b185ebca87
const PRIME_2: i64 = 0xc2b2ae3d27d4eb4f

/** Hashes whole stripes of 32 bytes from `start` to `end` into the four sums that lie at `sums`. */
export function xxh64Stripes(sums: i32, start: i32, end: i32): void {
  let one = load<i64>(sums)
  let two = load<i64>(sums, 8)
  let three = load<i64>(sums, 16)
  let four = load<i64>(sums, 24)
  for (let at = start; at < end; at += 32) {
    one = round(one, load<i64>(at))
    two = round(two, load<i64>(at, 8))
    three = round(three, load<i64>(at, 16))
    four = round(four, load<i64>(at, 24))
  }
  store<i64>(sums, one)
  store<i64>(sums, two, 8)
  store<i64>(sums, three, 16)
  store<i64>(sums, four, 24)
}

function round(sum: i64, word: i64): i64 {
  return rotl<i64>(sum + word * PRIME_2, 31) * PRIME_1
}
