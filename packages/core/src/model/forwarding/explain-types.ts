import type { IpAddress } from '../ip/address.ts';
import type { Port, Protocol } from '../ip/port.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { Endpoint, Frontend, SourceClass } from './forwarding-table.ts';

/** The first packet of a connection, as this node sees it. */
export interface Flow {
  /** Source class by the detection of the kernel; see `sourceClassOf`. */
  readonly from: SourceClass;
  /** Name of the incoming interface; undefined for packets of this node, and where it does not matter. */
  readonly incomingInterface?: string | undefined;
  /**
   * Whether a socket on this node sends it, the node's own or a pod's. Read only where sockets are translated. Default: true
   * for `pod` and `node`, false for `outside`. Set it for undetectable pods of this node, and for pods of other nodes.
   */
  readonly isSentHere?: boolean | undefined;
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly destinationPort: Port;
  readonly protocol: Protocol;
  /** Whether `destination` is an address of this node (decides if a NodePort can match). */
  readonly destinationIsLocal: boolean;
}

/** Treatment of a flow by the dataplane. */
export type Verdict =
  | {
      readonly kind: 'forward';
      /** One of these, at random or by affinity; never empty. */
      readonly endpoints: readonly Endpoint[];
      /** An endpoint that is the sender itself is masqueraded in any case (hairpin), unless a socket chose it (`isSentBySocket`). */
      readonly masquerade: boolean;
    }
  | { readonly kind: 'reject' }
  | { readonly kind: 'drop' }
  /** No Service traffic: routed as without a proxy. */
  | { readonly kind: 'pass' };

/** One step of an explanation for users, with a stable code. */
export interface Reason {
  readonly code: ReasonCode;
  readonly text: string;
}

/** Verdict with reasons. Every backend must produce exactly this verdict. */
export interface Explanation {
  readonly verdict: Verdict;
  readonly service: ServicePortKey | undefined;
  readonly frontend: Frontend | undefined;
  readonly reasons: readonly Reason[];
}

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
