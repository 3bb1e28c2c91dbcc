/**
 * Every reason `explain` can give, in the order in which reasons appear. Codes are stable: scenarios,
 * reports and `--switchyard-dump` name them; texts are for people and may change.
 */
export const reasonCodes = [
  // Which rule the packet meets.
  'otherFamily',
  'frontend',
  'nodePort',
  'frontendShared',
  'apiServerAddress',
  'nodePortAddressNotSelected',
  'nodePortOnLoopback',
  'leftToRoute',
  'unknownPortOfClusterIp',
  'unallocatedClusterIp',
  'notAService',
  // Source ranges.
  'sourceAllowed',
  'sourceNotAllowed',
  // Policy.
  'unknownIpMode',
  'ipModeRouter',
  'internalTrafficPolicy',
  'externalTrafficPolicy',
  'shortCircuitPod',
  'shortCircuitNode',
  // Endpoints of the chosen set.
  'noUsableEndpoints',
  'noLocalEndpoints',
  'refusedOnArrivalOnly',
  'topologySameNode',
  'topologySameZone',
  'terminatingFallback',
  'endpointNotReady',
  'endpointTerminating',
  'endpointNotLocal',
  'endpointOtherNode',
  'endpointOtherZone',
  // Source address.
  'masqueradeExternal',
  'masqueradeNode',
  'masqueradeOffCluster',
  'masqueradeAll',
  'sourceKept',
  'sentBySocket',
  'sentByProxy',
  'hairpin',
  'sessionAffinity',
] as const;

/** One of `reasonCodes`. */
export type ReasonCode = (typeof reasonCodes)[number];
