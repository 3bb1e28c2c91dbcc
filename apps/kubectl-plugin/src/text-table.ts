/** Columns as kubectl prints them: three spaces apart, as wide as their widest cell; the last one as it is. */
export function textTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) => Math.max(name.length, ...rows.map((row) => (row[column] ?? '').length)));
  return [head, ...rows].map((row) => textLine(row, widths)).join('');
}

/** One line with cells of these widths. */
export function textLine(cells: readonly string[], widths: readonly number[]): string {
  const padded = cells.map((cell, column) => (column === cells.length - 1 ? cell : cell.padEnd(widths[column] ?? 0)));
  return `${padded.join('   ').trimEnd()}\n`;
}
