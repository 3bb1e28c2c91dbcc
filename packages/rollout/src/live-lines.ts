import type { Millis } from '@switchyard/core';
import type { RequestRecord } from './run-record.ts';

export interface LiveLine {
  /** Seconds after the start of the load at which the line begins. */
  readonly from: number;
  readonly text: string;
}

/**
 * Turns requests into lines, one per `period`: `o` answered by the old pod, `N` by the new one, `x` lost. A stretch
 * in which nothing changes is one line with a count, so that a reader sees the responses change, as in a terminal that
 * runs curl in a loop. Requests must come in the order they were sent.
 */
export class LiveLines {
  readonly #options: { readonly startedAt: Millis; readonly period: Millis; readonly oldPod: string };
  #symbols = '';
  #from = 0;
  #end = 0;
  #quiet: { readonly symbol: string; readonly from: number; count: number } | undefined;

  constructor(options: { readonly startedAt: Millis; readonly period: Millis; readonly oldPod: string }) {
    this.#options = options;
  }

  /** Takes one finished request; returns the lines that are complete now. */
  add(request: RequestRecord): readonly LiveLine[] {
    const { startedAt, period } = this.#options;
    const at = request.scheduledAt - startedAt;
    const lines = this.#symbols !== '' && at >= this.#end ? this.#closePeriod() : [];
    if (this.#symbols === '') {
      this.#from = at / 1000;
      this.#end = (Math.floor(at / period) + 1) * period;
    }
    this.#symbols += this.#symbolOf(request);
    return lines;
  }

  /** Returns the remaining lines. */
  finish(): readonly LiveLine[] {
    return [...(this.#symbols === '' ? [] : this.#closePeriod()), ...this.#closeQuiet()];
  }

  #symbolOf(request: RequestRecord): string {
    if (request.outcome !== 'answered') return 'x';
    return request.answeredBy === this.#options.oldPod ? 'o' : 'N';
  }

  #closePeriod(): readonly LiveLine[] {
    const symbols = this.#symbols;
    this.#symbols = '';
    const symbol = symbols[0] ?? '';
    const isUniform = [...symbols].every((one) => one === symbol);
    if (isUniform && this.#quiet?.symbol === symbol) {
      this.#quiet.count += symbols.length;
      return [];
    }
    const before = this.#closeQuiet();
    if (isUniform) {
      this.#quiet = { symbol, from: this.#from, count: symbols.length };
      return before;
    }
    return [...before, line(this.#from, symbols)];
  }

  #closeQuiet(): readonly LiveLine[] {
    const quiet = this.#quiet;
    this.#quiet = undefined;
    if (quiet === undefined) return [];
    const words: Readonly<Record<string, string>> = { o: 'old pod', N: 'new pod', x: 'LOST' };
    return [line(quiet.from, `${words[quiet.symbol] ?? quiet.symbol} x ${quiet.count}`)];
  }
}

function line(from: number, text: string): LiveLine {
  return { from, text: `${`${from.toFixed(1)} s`.padStart(8)}  ${text}` };
}
