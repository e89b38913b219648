/** One way to do the job; resolves with the figure of one round. */
export type Contender = () => Promise<number>

/**
 * Lets the contenders run in turn, round after round, so that what else the machine does meets all of
 * them alike.
 *
 * @returns the figures of each
 */
export async function inTurn<Name extends string>(
  rounds: number,
  contenders: Record<Name, Contender>,
): Promise<Record<Name, number[]>> {
  const names = Object.keys(contenders) as Name[]
  const figures = Object.fromEntries(names.map((name) => [name, []])) as unknown as Record<
    Name,
    number[]
  >
  for (let round = 0; round < rounds; round++) {
    for (const name of names) figures[name].push(await contenders[name]())
  }
  return figures
}

/**
 * The median of what the rounds give, each against the peer beside it: of half seconds on a shared
 * machine the best of ours and the best of the peer's come from different weather.
 */
export function medianRatio(ours: readonly number[], peer: readonly number[]): number {
  return median(ours.map((figure, round) => figure / peer[round]!))
}

export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2
}
