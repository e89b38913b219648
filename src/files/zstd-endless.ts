/** The lengths of the literals' section header by its size format, where literals are compressed. */
const SECTION_HEADERS = [3, 3, 4, 5]
const COMPRESSED_LITERALS = 2

/** A description of Huffman codes begins with the length of its compressed weights, below this. */
const DIRECT_WEIGHTS = 128
/** The weights' table is no larger: 2^6 states. */
const MOST_ACCURACY = 6

/**
 * Whether fzstd 0.1.1 would read a compressed block for ever: where one Huffman weight has all of the
 * probability, a weight takes no bits, and the end of the bits is never met. No compressor writes that;
 * a broken byte does. RFC 8878, 3.1.1.3.1 and 4.1.1, tell the layout.
 */
export function isEndless(body: Buffer): boolean {
  const first = body[0]!
  if ((first & 3) !== COMPRESSED_LITERALS) return false
  const tree = SECTION_HEADERS[(first >> 2) & 3]!
  const description = body.subarray(tree + 1)
  if (!(body[tree]! < DIRECT_WEIGHTS) || description.length === 0) return false
  const accuracy = (description[0]! & 15) + 5
  return accuracy <= MOST_ACCURACY && isOneForAll(description, accuracy)
}

/** Whether the first weight that has a probability at all has all of it. */
function isOneForAll(description: Buffer, accuracy: number): boolean {
  let at = 4
  const take = (count: number): number => {
    const from = at >> 3
    const word = (description[from] ?? 0) | ((description[from + 1] ?? 0) << 8)
    at += count
    return (word >> (at - count - from * 8)) & (2 ** count - 1)
  }
  for (;;) {
    const value = take(accuracy)
    // The longest code, all ones, stands for the probability 2^accuracy; 1 stands for 0.
    if (value === 2 ** accuracy - 1) return take(1) === 1
    if (value !== 1) return false
    while (take(2) === 3);
  }
}
