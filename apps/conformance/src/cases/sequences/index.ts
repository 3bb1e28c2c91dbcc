import { type Clock, systemClock } from '@switchyard/core';
import type { CatalogueOptions, SequenceCase } from '../../model/case.ts';
import { affinityTimeouts } from './affinity-timeouts.ts';
import { agentDown } from './agent-down.ts';
import { dualStack } from './dual-stack.ts';
import { endpointChurn } from './endpoint-churn.ts';
import { healthNodePorts } from './health-node-ports.ts';
import { holdOpen } from './hold-open.ts';
import { manyChangesThenStop } from './many-changes-then-stop.ts';
import { nodePortAddressChange } from './node-port-address-change.ts';
import { etpToggleUnderLoad, itpToggleUnderLoad } from './policy-toggles.ts';
import { restartUnderLoad } from './restart-under-load.ts';
import { serviceTypeTourUnderLoad } from './service-type-tour-under-load.ts';
import { sourceRangeEdits } from './source-range-edits.ts';
import { staleAfterRestart } from './stale-after-restart.ts';
import { casesOf, type Sequence } from './support/sequence.ts';
import { terminatingOneByOne, terminatingTogether } from './terminating-transitions.ts';
import { udpBeforeService } from './udp-before-service.ts';
import { udpConnectedSocket, udpUnconnectedSocket } from './udp-connected-socket.ts';
import { udpEndpointReplacement } from './udp-endpoint-replacement.ts';

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
  terminatingOneByOne,
  terminatingTogether,
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
export function sequenceCases(options: CatalogueOptions, clock: Clock = systemClock): readonly SequenceCase[] {
  return sequences.flatMap((sequence) => casesOf(sequence, options, clock));
}
