/** A Markdown table without a line break at its end. Cells may hold anything but line breaks. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', String.raw`\|`)).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)].join('\n');
}

/** Markdown for code; an empty text stays empty. */
export function markdownCode(text: string): string {
  return text === '' ? '' : `\`${text}\``;
}
