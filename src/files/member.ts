import type { HeaderForm, Pieces } from './pieces.ts'

/** What is wrong with a member, as messages say it behind "the gzip stream". */
export class Damage extends Error {
  /** Where the next member is looked for; undefined where it can only come next. */
  readonly searchFrom: number | undefined
  /** What was read of the member is sound: the file ends in it. */
  readonly isSound: boolean

  constructor(what: string, searchFrom?: number, isSound = false) {
    super(what)
    this.searchFrom = searchFrom
    this.isSound = isSound
  }
}

/** A member that is cut; what comes next is the next one, or the end of the file. */
export function endsEarly(isSound = false): Damage {
  return new Damage('ends early', undefined, isSound)
}

/** A broken member. */
export function isDamaged(searchFrom?: number): Damage {
  return new Damage('is damaged', searchFrom)
}

/** How a member is read. */
export interface MemberOptions {
  /** Whether another member begins there, so that this one is cut; without it, this is a trial. */
  isMember?: (offset: number) => Promise<boolean>
  /** The bytes from there on once more; undefined where they are gone. */
  again?: (offset: number) => Pieces | undefined
}

/** What can be decompressed alone: a member of a gzip file, a frame of a zstd file. */
export interface Member {
  /**
   * The next bytes of what the member holds; undefined at its end.
   *
   * @throws Damage where it is cut or broken
   */
  next(): Promise<Buffer | undefined>
  /**
   * Reads a broken member again, for what stands before the damage and was not given.
   *
   * @param pieces from the begin of the member on
   * @returns where the damage is
   */
  rest?(pieces: Pieces): AsyncGenerator<Buffer, number, void>
  /** Ends with a member that is not read to its end. */
  close(): void
}

/** A format that is a sequence of members. */
export interface MemberKind {
  name: 'gzip' | 'zstd'
  header: HeaderForm
  /** NULs may follow the last member. */
  isPadded: boolean
  /** So many compressed bytes that can be decompressed are no chance. */
  trial: number
  /**
   * Begins with the member whose header comes next.
   *
   * @returns undefined where none does; the bytes are there still
   * @throws Damage where the header is cut or broken
   */
  open(pieces: Pieces, options: MemberOptions): Promise<Member | undefined>
}
