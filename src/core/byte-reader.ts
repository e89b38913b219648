/** Something that bytes can be read from, one call at a time. */
export interface ByteReader {
  /** Reads at least one byte and at most `length` into `into`; 0 at the end. */
  read(into: Buffer, offset: number, length: number): Promise<number>
}
