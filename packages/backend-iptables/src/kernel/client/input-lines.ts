import { LineSplitter } from '@switchyard/netfilter/iptables';

/** Remembers, of a text that is written in pieces, which of its lines are COMMIT. */
export class InputLines {
  readonly #commits = new Set<number>();
  readonly #text: string | Iterable<string>;
  #lines = 0;

  constructor(text: string | Iterable<string>) {
    this.#text = text;
  }

  /** The text, for once. */
  *[Symbol.iterator](): Generator<string, void, undefined> {
    const splitter = new LineSplitter((line) => {
      this.#lines += 1;
      if (line === 'COMMIT') this.#commits.add(this.#lines);
    });
    for (const piece of typeof this.#text === 'string' ? [this.#text] : this.#text) {
      splitter.push(piece);
      yield piece;
    }
    splitter.end();
  }

  /** Whether a line is COMMIT; 1 is the first. */
  isCommit(line: number): boolean {
    return this.#commits.has(line);
  }
}
