import { isExpected } from '@switchyard/core';
import { CliError } from '../docker/cli-failure.ts';
import { failedOutcome } from '../docker/container-failures.ts';

/** Why a runtime did not do what it was asked for. */
export interface Trouble {
  /** CamelCase and stable. */
  readonly reason: string;
  /** One line: what was tried, what came back, what to do. */
  readonly message: string;
}

/**
 * What a runtime answers, or what went wrong: it answered that something failed, or rejected in a way that runtimes may. Rejects
 * with `signal.reason`, and with what is no runtime's business.
 */
export async function askRuntime<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
): Promise<Exclude<T, { readonly status: 'failed' }> | Trouble> {
  try {
    return (await ask()) as Exclude<T, { readonly status: 'failed' }>; // a failed outcome is a Trouble
  } catch (error) {
    signal.throwIfAborted();
    if (!isExpected(error)) throw error;
    return error instanceof CliError ? failedOutcome(error) : { reason: 'RuntimeFailed', message: error.message };
  }
}
