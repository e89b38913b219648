/** The numbers go before the picture where there is not room for both. */
const WIDEST = 20
const NARROWEST = 5

/**
 * A bar and a space in at most so many columns; nothing where that would tell nothing.
 *
 * @param share of the work that is done, from 0 to 1
 */
export function barPicture(share: number, room: number): string {
  const width = Math.min(WIDEST, room - 3)
  if (width < NARROWEST) return ''
  const filled = Math.round(share * width)
  return `[${'#'.repeat(filled)}${'.'.repeat(width - filled)}] `
}
