import type { Clock, Logger, Random } from '@switchyard/core';
import type { CommandRunner } from '@switchyard/host';

/** This machine and this process, as the controller sees them. */
export interface Host {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly runner: CommandRunner;
  readonly hostname: string;
  /** Unlike that of every other process, here or elsewhere: `<hostname>_<uuid>`. */
  readonly identity: string;
}
