/**
 * Root of all errors this project throws. Subclasses say whose fault it is, so that the edge of a
 * program can decide between "print one line", "retry" and "crash with a stack".
 */
export abstract class DataplaneError extends Error {
  abstract override readonly name: string;
  /** Stable, machine-readable literal such as `ip.invalid`. */
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Our own promise is broken. Never caught to continue. */
export class InvariantError extends DataplaneError {
  override readonly name = 'InvariantError';
  constructor(message: string, options?: ErrorOptions) {
    super('invariant', message, options);
  }
}

/** The calling code passed something its contract forbids. */
export class UsageError extends DataplaneError {
  override readonly name = 'UsageError';
}

/** The operator's flags, files or manifests are wrong. Printed without a stack. */
export class ConfigError extends DataplaneError {
  override readonly name = 'ConfigError';
}

/** This machine refused: a command, a socket, a sysctl. `CommandError` and `NativeError` refine it. */
export class HostError extends DataplaneError {
  override readonly name: string = 'HostError';
}

/** The API server refused or answered nonsense. */
export class ApiServerError extends DataplaneError {
  override readonly name = 'ApiServerError';
  readonly isRetryable: boolean;
  /** HTTP status, or undefined if no response came. */
  readonly status: number | undefined;

  constructor(
    code: string,
    message: string,
    options: ErrorOptions & { readonly isRetryable: boolean; readonly status?: number | undefined },
  ) {
    super(code, message, options);
    this.isRetryable = options.isRetryable;
    this.status = options.status;
  }
}

/** Whether a caught value tells of something that happens: not of a promise of ours that is broken, nor of a fault nobody thought of. */
export function isExpected(thrown: unknown): thrown is DataplaneError {
  return thrown instanceof DataplaneError && !(thrown instanceof InvariantError);
}

/** What a caught value says: the message of an error, the text of anything else. */
export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** A caught value as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
