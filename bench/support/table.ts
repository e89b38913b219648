/**
 * Lays rows out in columns for a terminal.
 *
 * @param rows rows of one cell are headings of their own and do not widen the first column
 */
export function table(headings: readonly string[], rows: readonly (readonly string[])[]): string {
  const full = [headings, ...rows.filter((row) => row.length > 1)]
  const widths = headings.map((_, column) =>
    Math.max(...full.map((row) => row[column]?.length ?? 0)),
  )
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '-'.repeat(width)).join('  ')
  const body = rows.map((row) => (row.length === 1 ? `\n${row[0]}` : line(row)))
  return `${[line(headings), rule, ...body].join('\n')}\n`
}
