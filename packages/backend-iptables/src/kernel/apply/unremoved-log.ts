import { type Clock, type IpFamily, type Logger, type Millis, seconds } from '@switchyard/core';

/** Minimum interval between two warnings about the same rule. */
const minInterval: Millis = seconds(600);

/** Warns of stale rules that could not be removed. Every repair may meet the same rule, so repeated warnings are rare. */
export class UnremovedLog {
  readonly #options: { readonly clock: Clock; readonly logger: Logger; readonly ipFamily: IpFamily };
  #last: { readonly reason: string; readonly at: Millis } | undefined;

  constructor(options: { readonly clock: Clock; readonly logger: Logger; readonly ipFamily: IpFamily }) {
    this.#options = options;
  }

  note([first, ...others]: readonly Error[]): void {
    if (first === undefined) return;
    const { clock, logger, ipFamily } = this.#options;
    const at = clock.monotonic();
    const reason = first.message.replaceAll(/\bline:? \d+/g, 'line'); // the line number differs between restores
    if (this.#last?.reason === reason && at - this.#last.at < minInterval) return;
    this.#last = { reason, at };
    const fields = { ipFamily, refused: 1 + others.length, reason: first.message };
    logger.warn('stale rules could not be removed; the next full apply tries again', fields);
  }
}
