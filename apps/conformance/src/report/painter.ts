import { styleText } from 'node:util';

/** Gives text a meaning by colour; without colours it stays as it is. */
export interface Painter {
  good(text: string): string;
  bad(text: string): string;
  warn(text: string): string;
  soft(text: string): string;
  strong(text: string): string;
}

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
