import type { IpAddress } from '../ip/address.ts';
import type { Port, Protocol } from '../ip/port.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { Endpoint, Frontend, SourceClass } from './forwarding-table.ts';
import type { ReasonCode } from './reason-codes.ts';

/** The first packet of a connection, as this node sees it. */
export interface Flow {
  /** What the kernel can tell of the source; `sourceClassOf` says what that is. */
  readonly from: SourceClass;
  /** Name of the interface it came in by; undefined for what this node sends itself, and where nobody asks. */
  readonly incomingInterface?: string | undefined;
  /**
   * Whether a socket on this node sends it, the node's own or a pod's, rather than that it arrives from elsewhere. Read only
   * where sockets are translated. Undefined: true for `pod` and `node`, false for `outside`. Set it for pods of this node that
   * cannot be detected, and for pods of other nodes.
   */
  readonly isSentHere?: boolean | undefined;
  readonly source: IpAddress;
  readonly destination: IpAddress;
  readonly destinationPort: Port;
  readonly protocol: Protocol;
  /** Whether `destination` is an address of this node (decides if a NodePort can match). */
  readonly destinationIsLocal: boolean;
}

/** What the dataplane does with a flow. */
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
  /** Not ours: routed as if no proxy were there. */
  | { readonly kind: 'pass' };

/** Why: ordered steps a person can read, each with a stable code. */
export interface Reason {
  readonly code: ReasonCode;
  readonly text: string;
}

/** The oracle's answer: every backend must do exactly this. */
export interface Explanation {
  readonly verdict: Verdict;
  readonly service: ServicePortKey | undefined;
  readonly frontend: Frontend | undefined;
  readonly reasons: readonly Reason[];
}
