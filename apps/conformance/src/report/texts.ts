import { styleText } from 'node:util';

/** `1 case`, `2 cases`. */
export function amountText(count: number, what: string): string {
  return `${count} ${count === 1 ? what : `${what}s`}`;
}

/** A duration as text: `0.4 s`, `12 s`, `3 min 05 s`, `1 h 02 min`. From milliseconds. */
export function durationText(duration: number): string {
  const seconds = duration / 1000;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${String(whole % 60).padStart(2, '0')} s`;
  const minutes = Math.round(whole / 60);
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

/**
 * Text from elsewhere (logs, objects of a cluster) for a terminal: control characters, which could move the cursor or hide
 * lines, are written as `\x1b`. Line feeds and tabs stay.
 */
export function plainText(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return `\\x${code.toString(16).padStart(2, '0')}`;
  });
}

/** Each line behind `indent` spaces. */
export function indented(text: string, indent: number): string {
  const space = ' '.repeat(indent);
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : space + line))
    .join('\n');
}

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

/** Gives text a meaning by colour; without colours it stays as it is. */
export type Painter = Readonly<Record<'good' | 'bad' | 'warn' | 'soft' | 'strong', (text: string) => string>>;

/** Whether to use colours: on a terminal, unless `NO_COLOR` is not empty (no-color.org). */
export function wantsColours(stream: { readonly isTTY?: boolean }, noColor: string | undefined): boolean {
  return stream.isTTY === true && (noColor ?? '') === '';
}

/** A painter with ANSI colours, or one that changes nothing. */
export function painter(isColoured: boolean): Painter {
  const paint =
    (format: Parameters<typeof styleText>[0]) =>
    (text: string): string =>
      isColoured ? styleText(format, text, { validateStream: false }) : text;
  return {
    good: paint('green'),
    bad: paint('red'),
    warn: paint('yellow'),
    soft: paint('dim'),
    strong: paint('bold'),
  };
}
