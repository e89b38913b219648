/** A promise with its resolver, as `Promise.withResolvers` gives it from Node 22 on. */
export function settleable<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve!: (value: T) => void
  const promise = new Promise<T>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}
