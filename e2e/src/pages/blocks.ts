/** A block of shell commands in a page of the documentation. */
export interface PageBlock {
  /** `docs/operate/kind.md`. */
  readonly page: string;
  /** Line of its first command, from 1. */
  readonly line: number;
  readonly text: string;
}

/** All blocks of a page that begin with three backquotes and `sh`, in their order; a word after `sh` changes nothing. */
export function blocksOf(page: string, text: string): readonly PageBlock[] {
  return [...text.matchAll(/^```sh\b[^\n]*\n([^]*?)^```$/gm)].map((found) => ({
    page,
    line: text.slice(0, found.index).split('\n').length + 1,
    text: found[1] ?? '',
  }));
}
