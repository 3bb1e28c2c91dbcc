/** Cuts text that comes in pieces into lines. */
export class LineSplitter {
  readonly #take: (line: string) => void;
  #rest = '';

  constructor(take: (line: string) => void) {
    this.#take = take;
  }

  push(piece: string): void {
    let from = 0;
    for (let end = piece.indexOf('\n'); end >= 0; end = piece.indexOf('\n', from)) {
      this.#take(detached(this.#rest + piece.slice(from, end)));
      this.#rest = '';
      from = end + 1;
    }
    this.#rest += piece.slice(from);
  }

  /** Hands out a last line that has no end. */
  end(): void {
    if (this.#rest !== '') this.#take(this.#rest);
    this.#rest = '';
  }
}

/**
 * The same text with memory of its own. V8 cuts a text by pointing into it, so whoever keeps one name out of a piece keeps the
 * whole piece; joining it with another makes a text of its own.
 */
export function detached(text: string): string {
  return ` ${text}`.slice(1);
}
