/** Splits text that arrives in pieces into lines. */
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

  /** Delivers a last line without a newline. */
  end(): void {
    if (this.#rest !== '') this.#take(this.#rest);
    this.#rest = '';
  }
}

/** Copies a text: V8's slices keep the whole original in memory, joined texts do not. */
export function detached(text: string): string {
  return ` ${text}`.slice(1);
}
