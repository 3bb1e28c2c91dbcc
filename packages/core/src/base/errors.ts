/**
 * Root of all errors this project throws. Subclasses name the origin of the fault, so that the edge of a
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

/** A defect of this program: an invariant does not hold. Never caught to continue. */
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

/** Invalid flags, files or manifests of the operator. Printed without a stack. */
export class ConfigError extends DataplaneError {
  override readonly name = 'ConfigError';
}

/** A refusal of this machine: a command, a socket, a sysctl. `CommandError` and `NativeError` refine it. */
export class HostError extends DataplaneError {
  override readonly name: string = 'HostError';
}

/** A refusal, missing answer or invalid answer of the API server. */
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
    if (typeof options?.isRetryable !== 'boolean') {
      throw new UsageError('argument.invalid', 'ApiServerError: options.isRetryable must be true or false');
    }
    super(code, message, options);
    this.isRetryable = options.isRetryable;
    this.status = options.status;
  }
}

/** Whether a caught value is an anticipated failure: neither an `InvariantError` nor an error of another origin. */
export function isExpected(thrown: unknown): thrown is DataplaneError {
  return thrown instanceof DataplaneError && !(thrown instanceof InvariantError);
}

/**
 * Returns the message of a caught error, or the text of any other value. Of an error whose clean-up failed too (`SuppressedError`): both
 * messages, in the order in which they came.
 */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof SuppressedError) return `${messageOf(thrown.suppressed)}; then ${messageOf(thrown.error)}`;
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Returns a caught value as an error. */
export function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error(String(thrown));
}
