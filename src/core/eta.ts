/** What is left of a run, in tokens or in pieces of text. */
export interface WorkLeft {
  /** Records that are not finished, and those of them that are being answered. */
  unfinished: number
  open: number
  /** Length of an answer in the mean. */
  mean: number
  /** What has come of the open answers, in all. */
  got: number
  /** What comes in a second, over all. */
  rate: number
}

/**
 * Milliseconds until the run is done; undefined while it cannot be told. By tokens and not by
 * requests: those still open at the end are the long ones, and a rate of requests forgets them. An
 * open answer is taken to have half of a mean one to come at least, however long it is already.
 */
export function timeLeft({ unfinished, open, mean, got, rate }: WorkLeft): number | undefined {
  if (!(rate > 0 && mean > 0)) return undefined
  const answering = Math.min(open, unfinished)
  const begun = Math.max(answering * mean - got, (answering * mean) / 2)
  return (((unfinished - answering) * mean + begun) / rate) * 1000
}
