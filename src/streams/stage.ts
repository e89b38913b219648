import type { Transform } from 'node:stream'
import { objectTransform } from 'through2'

/**
 * The last stage of a pipeline: works on up to `limit` items at a time and takes the next one only
 * when there is room, so that backpressure reaches the source. Ends when all work is done; the first
 * piece of work that rejects ends the pipeline.
 */
export function concurrentStage<In>(limit: number, work: (item: In) => Promise<void>): Transform {
  let active = 0
  let takeNext: (() => void) | undefined
  let finish: (() => void) | undefined
  const stage = objectTransform(
    (item: In, _encoding, callback) => {
      active++
      const settled = (): void => {
        active--
        const next = takeNext
        takeNext = undefined
        next?.()
        if (active === 0) finish?.()
      }
      work(item).then(settled, (error: unknown) => {
        settled()
        stage.destroy(error as Error)
      })
      if (active < limit) callback()
      else takeNext = callback
    },
    (callback: () => void) => {
      if (active === 0) callback()
      else finish = callback
    },
  )
  stage.resume()
  // through2 builds on readable-stream, whose types are node's in all that pipelines use.
  return stage as unknown as Transform
}
