import { HostError } from '@switchyard/core';

/** The kernel does not hold what we believe, and it is not known what else: it must be read back. */
export class DamagedError extends HostError {
  constructor(message: string, options?: ErrorOptions) {
    super('iptables.damaged', message, options);
  }
}

/** Says what was found. */
export function damaged(what: string, cause?: unknown): DamagedError {
  return new DamagedError(`cannot tell what the rules are: ${what}; they are read back`, { cause });
}
