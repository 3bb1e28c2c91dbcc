import { type Clock, ConfigError } from '@switchyard/core';

/** What the command needs of its process. */
export interface CheckIo {
  /** Writes to stdout. */
  readonly write: (text: string) => void;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
}

/** What the process is to exit with: 0 nothing is lost even in the worst case, 2 a loss is predicted. */
export type CheckExitCode = 0 | 2;

/**
 * `switchyard-lb check SERVICE ...`: says, before any rollout, what one will cost behind health-check profiles. `args` are those
 * after `check`. Only reads from the cluster. Rejects with `ConfigError` for wrong flags and for a Service that is not there,
 * with `ApiFailure` when the API server cannot be asked: both are exit code 1.
 */
export function runCheck(_args: readonly string[], _io: CheckIo, signal: AbortSignal): Promise<CheckExitCode> {
  signal.throwIfAborted();
  return Promise.reject(new ConfigError('check.flags', 'check SERVICE: the command reads nothing yet'));
}
