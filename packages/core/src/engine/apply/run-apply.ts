import { HostError } from '../../errors.ts';
import type { ForwardingTable, TableDelta } from '../../forwarding/forwarding-table.ts';
import type { IpFamily } from '../../ip/address.ts';
import type { Logger } from '../../log.ts';
import type { ApplyOutcome, ApplyRequest } from '../../reconcile/dataplane-backend.ts';
import { KernelDiffersError } from './kernel-differs-error.ts';

/** The state of one backend, which an apply brings up to date. */
export interface AppliedState {
  /** Whether it is recorded what the kernel holds, so that a delta can be written. */
  readonly isKnown: boolean;
  /** Drops the record: the next apply reads the kernel back. */
  forget(): void;
  /** Writes what the delta names. Called only while `isKnown`. */
  applyDelta(table: ForwardingTable, delta: TableDelta, signal: AbortSignal): Promise<ApplyOutcome>;
  /** Reads the kernel back and writes what differs. */
  applyFull(request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome>;
}

/** How often one apply begins when the kernel turns out to hold something else on the way. */
const maxReadings = 3;

/** The surroundings of an apply. */
export interface ApplyContext {
  readonly signal: AbortSignal;
  readonly logger: Logger;
  readonly ipFamily: IpFamily;
}

/**
 * Runs one apply as `DataplaneBackend.apply` promises: a delta where the kernel's state is known, otherwise a full
 * apply; once more, after reading back, when the kernel differs from the record. A refusal of the host is the outcome
 * `failed`; an aborted apply rejects with the signal's reason. Both forget the state.
 */
export async function runApply(
  state: AppliedState,
  request: ApplyRequest,
  { signal, logger, ipFamily }: ApplyContext,
): Promise<ApplyOutcome> {
  try {
    for (let readings = 1; ; readings++) {
      try {
        return await runOnce(state, request, signal);
      } catch (error) {
        if (!(error instanceof KernelDiffersError) || readings === maxReadings) throw error;
        state.forget();
        logger.warn('the rules are read back', { ipFamily, reason: error.message, cause: error.cause });
      }
    }
  } catch (error) {
    state.forget();
    signal.throwIfAborted();
    if (error instanceof HostError) return { status: 'failed', error };
    throw error;
  }
}

function runOnce(state: AppliedState, request: ApplyRequest, signal: AbortSignal): Promise<ApplyOutcome> {
  const { table, scope } = request;
  if (scope.kind === 'delta' && state.isKnown) return state.applyDelta(table, scope.delta, signal);
  return state.applyFull(request, signal);
}
