/** One test that ended during the run. */
export interface EndedTest {
  readonly name: string;
  /** `passed`, or ginkgo's word: `failed`, `skipped`, `panicked`, `timedout`, ... */
  readonly how: string;
}

/**
 * Follows what ginkgo prints with `-v`: the result before the name when tests run side by side, after it when they run one by one. Lines that
 * are not understood are ignored: results come from the report, this is only progress.
 */
export class UpstreamProgress {
  readonly #names: readonly string[];
  readonly #onEnd: (ended: EndedTest) => void;
  readonly #counts = new Map<string, number>();
  #rest = '';
  /** Test name in the current block. */
  #name: string | undefined;
  #how: string | undefined;
  #last = '';

  /** `names` are the tests that are to run. */
  constructor(names: readonly string[], onEnd: (ended: EndedTest) => void) {
    // The longest first: a name may be the beginning of another.
    this.#names = [...names].sort((a, b) => b.length - a.length);
    this.#onEnd = onEnd;
  }

  /** A piece of standard output; it may end within a line. */
  take(piece: string): void {
    const lines = (this.#rest + piece).split('\n');
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#line(line.trimEnd());
  }

  /** `12 of 95 done, 1 failed, 2 skipped themselves; running: ...`. */
  get text(): string {
    const count = (how: string): number => this.#counts.get(how) ?? 0;
    const done = [...this.#counts.values()].reduce((sum, one) => sum + one, 0);
    const failed = done - count('passed') - count('skipped');
    const skipped = count('skipped') > 0 ? `, ${count('skipped')} skipped themselves` : '';
    const where =
      this.#name !== undefined ? `; running: ${this.#name}` : this.#last === '' ? '' : `; last: ${this.#last}`;
    return `${done} of ${this.#names.length} done, ${failed} failed${skipped}${where}`;
  }

  #line(line: string): void {
    if (/^-{10,}$/.test(line)) {
      this.#name = undefined;
      this.#how = undefined;
      return;
    }
    // Tests out of focus are letters without a line end, which may stand before a result.
    const [, letter, word] = /^S*([•↺SP])(?: \[([A-Z][^\]]*)\])?(?: \[[\d.]+ seconds\])$/u.exec(line) ?? [];
    if (letter !== undefined) {
      this.#how = word === undefined || letter === '↺' ? 'passed' : word.toLowerCase();
      this.#end();
      return;
    }
    if (this.#name !== undefined || !line.startsWith('[sig-')) return;
    this.#name = this.#names.find((name) => line === name || line.startsWith(`${name} [`));
    this.#end();
  }

  /** Reports the test once its name and result are known. */
  #end(): void {
    const [name, how] = [this.#name, this.#how];
    if (name === undefined || how === undefined) return;
    this.#counts.set(how, (this.#counts.get(how) ?? 0) + 1);
    this.#last = name;
    this.#name = undefined;
    this.#how = undefined;
    this.#onEnd({ name, how });
  }
}
