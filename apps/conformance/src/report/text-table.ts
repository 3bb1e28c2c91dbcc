/** Rows as aligned text, two spaces apart. Columns but the first are right-aligned when `numbers` is set. */
export function textTable(rows: readonly (readonly string[])[], options: { readonly numbers?: boolean } = {}): string {
  const count = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: count }, (_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => {
          const width = widths[column] ?? 0;
          return options.numbers === true && column > 0 ? cell.padStart(width) : cell.padEnd(width);
        })
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}
