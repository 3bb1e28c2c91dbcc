import { isExpected } from '@switchyard/core';
import { CliError } from '../docker/cli-failure.ts';
import { failedOutcome } from '../docker/container-failures.ts';

/** Reason why a runtime failed. */
export interface RuntimeFailure {
  /** CamelCase and stable. */
  readonly reason: string;
  /** One line: what was tried, what came back, what to do. */
  readonly message: string;
}

/**
 * Returns the runtime's answer, or the failure: a failed outcome or an expected rejection. Rejects with `signal.reason` and with
 * unexpected errors.
 */
export async function askRuntime<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<Exclude<T, { readonly status: 'failed' }> | RuntimeFailure> {
  try {
    return (await ask()) as Exclude<T, { readonly status: 'failed' }>; // a failed outcome is a RuntimeFailure
  } catch (error) {
    signal.throwIfAborted();
    if (!isExpected(error)) throw error;
    return error instanceof CliError ? failedOutcome(error) : { reason: 'RuntimeFailed', message: error.message };
  }
}
