import type { EnsureOutcome } from '../runtime/runtime.ts';
import { type CliError, failureMeanings } from './cli-failure.ts';

/** An outcome that says why a load balancer cannot run as described. */
export type FailedOutcome = Extract<EnsureOutcome, { readonly status: 'failed' }>;

/** The outcome for a load balancer after an engine failure. */
export function failedOutcome({ failure, message }: CliError): FailedOutcome {
  return { status: 'failed', reason: failureMeanings[failure.kind].reason, message };
}
