import { HostError } from '../../base/errors.ts';

/** The kernel does not hold what an earlier apply recorded. It must be read back before anything else is written. */
export class KernelDiffersError extends HostError {
  override readonly name = 'KernelDiffersError';

  constructor(what: string, options?: ErrorOptions) {
    super('apply.kernel-differs', `the rules are not as recorded: ${what}; they are read back`, options);
  }
}
