import { statSync } from 'node:fs'

/** How much of the files is read, in bytes as they lie on the disk, compressed or not. */
export class ReadProgress {
  /** Bytes of all files; undefined where one is a pipe, whose length nobody knows. */
  #total: number | undefined
  #before = 0
  #size = 0
  #share: () => number = () => 0
  /** Told when an input could be opened. */
  onReading: () => void = () => {}

  constructor(files: readonly string[]) {
    const sizes = files.map(sizeOf)
    this.#total = sizes.reduce(
      (sum, size) => (sum === undefined || size === undefined ? undefined : sum + size),
      0,
    )
  }

  /** Begins with a file. */
  begin(file: string): void {
    this.#before += this.#size
    this.#size = sizeOf(file) ?? 0
    this.#share = () => 0
  }

  /** Sets what tells which share of the file is read. */
  tells(share: (size: number) => number): void {
    this.#share = () => share(this.#size)
    this.onReading()
  }

  /** From 0 to 1; undefined where nobody knows. */
  get share(): number | undefined {
    if (!this.#total) return undefined
    return Math.min(1, (this.#before + this.#share() * this.#size) / this.#total)
  }
}

/** Files that cannot be seen are told of when they are opened. */
function sizeOf(file: string): number | undefined {
  if (file === '-') return undefined
  try {
    const stats = statSync(file)
    return stats.isFile() ? stats.size : undefined
  } catch {
    return 0
  }
}
