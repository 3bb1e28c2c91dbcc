import type { Clock } from '@switchyard/core';
import type { CatalogueOptions, SequenceCase } from '../../model/case.ts';
import { affinityTimeouts } from './affinity-timeouts.ts';
import { dualStack, endpointChurn, etpToggleUnderLoad, itpToggleUnderLoad } from './changes-under-load.ts';
import { serviceTypeTourUnderLoad } from './changes-under-load.ts';
import { holdOpen, sourceRangeEdits, terminatingTransitions } from './connections.ts';
import { healthNodePorts, nodePortAddressChange } from './node-changes.ts';
import { agentDown, manyChangesThenStop, restartUnderLoad, staleAfterRestart } from './restarts.ts';
import { casesOf, type Sequence } from './support/sequence-context.ts';
import { udpBeforeService, udpConnectedSocket, udpEndpointReplacement, udpUnconnectedSocket } from './udp-clients.ts';

/** All sequences, in the order in which they are listed. */
export const sequences: readonly Sequence[] = [
  restartUnderLoad,
  agentDown,
  staleAfterRestart,
  manyChangesThenStop,
  udpEndpointReplacement,
  udpBeforeService,
  udpConnectedSocket,
  udpUnconnectedSocket,
  ...terminatingTransitions,
  holdOpen,
  sourceRangeEdits,
  etpToggleUnderLoad,
  itpToggleUnderLoad,
  serviceTypeTourUnderLoad,
  nodePortAddressChange,
  healthNodePorts,
  affinityTimeouts,
  dualStack,
  endpointChurn,
];

/** Cases written as programs, in every family. `clock` is for tests with simulated time. */
export function sequenceCases(options: CatalogueOptions, clock?: Clock): readonly SequenceCase[] {
  return sequences.flatMap((sequence) => casesOf(sequence, options, clock));
}
