import { assertNever } from '@switchyard/core';
import type { EnsureOutcome } from '../runtime/runtime.ts';
import { type CliError, type CliFailureKind } from './cli-failure.ts';

/** An outcome that says why a load balancer cannot run as described. */
export type FailedOutcome = Extract<EnsureOutcome, { readonly status: 'failed' }>;

/** What the engine's refusal means for a load balancer. */
export function failedOutcome({ failure, message }: CliError): FailedOutcome {
  return { status: 'failed', reason: reasonOf(failure.kind), message };
}

function reasonOf(kind: CliFailureKind): string {
  switch (kind) {
    case 'programMissing':
      return 'EngineProgramNotFound';
    case 'timedOut':
      return 'EngineTimeout';
    case 'engineDown':
      return 'EngineUnreachable';
    case 'programTooOld':
      return 'EngineProgramTooOld';
    case 'notPermitted':
      return 'EngineNotPermitted';
    case 'noSuchNetwork':
      return 'NetworkNotFound';
    case 'noSuchImage':
      return 'ImageNotFound';
    case 'portInUse':
      return 'HostPortTaken';
    case 'noSpace':
      return 'NoSpace';
    case 'nameInUse':
      return 'ContainerNameTaken';
    case 'noSuchContainer':
    case 'notRunning':
    case 'other':
      return 'ContainerFailed';
    default:
      return assertNever(kind);
  }
}
