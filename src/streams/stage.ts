import type { Transform } from 'node:stream'
import { objectTransform } from 'through2'

export interface StageLimits {
  /** Items that are worked on at a time, at most. */
  most: number
  /**
   * Whether another one is wanted beside those at work; `more` is to be called when that may have
   * changed.
   */
  isWanted: () => boolean
}

export interface ConcurrentStage {
  stream: Transform
  /** Takes the next items if there is room. */
  more: () => void
}

/**
 * The last stage of a pipeline: works on several items at a time and takes the next one only when
 * there is room, so that backpressure reaches the source. Ends when all work is done; the first piece
 * of work that rejects ends the pipeline.
 */
export function concurrentStage<In>(
  { most, isWanted }: StageLimits,
  work: (item: In) => Promise<void>,
): ConcurrentStage {
  let active = 0
  let takeNext: (() => void) | undefined
  let finish: (() => void) | undefined
  const more = (): void => {
    if (takeNext === undefined || active >= most || (active > 0 && !isWanted())) return
    const next = takeNext
    takeNext = undefined
    next()
  }
  const settled = (): void => {
    active--
    more()
    if (active === 0) finish?.()
  }
  const stage = objectTransform(
    (item: In, _encoding, callback) => {
      active++
      work(item).then(settled, (error: unknown) => {
        settled()
        stage.destroy(error as Error)
      })
      takeNext = callback
      more()
    },
    (callback: () => void) => {
      if (active === 0) callback()
      else finish = callback
    },
  )
  stage.resume()
  // through2 builds on readable-stream, whose types are node's in all that pipelines use.
  return { stream: stage as unknown as Transform, more }
}
