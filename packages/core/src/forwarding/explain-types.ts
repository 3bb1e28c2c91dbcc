import type { IpAddress } from '../ip/address.ts';
import type { Port, Protocol } from '../ip/port.ts';
import type { ServicePortKey } from '../records/keys.ts';
import type { Endpoint, Frontend, SourceClass } from './forwarding-table.ts';
import type { ReasonCode } from './reason-codes.ts';

/**
 * The modes of kube-proxy that we have, for where they answer differently to the same table: packets to a cluster IP that no
 * frontend matches, source ranges of a Service without endpoints, and what the node itself sends to external and load-balancer
 * IPs that refuse it. `ebpf` answers as `nftables`, but what sockets of this node send is never masqueraded: `isSentBySocket`.
 */
export type DataplaneMode = (typeof dataplaneModes)[number];

/** All modes, as `--proxy-mode` names them. */
export const dataplaneModes = ['nftables', 'iptables', 'ebpf'] as const;

/** The first packet of a connection, as this node sees it. */
export interface Flow {
  /** What the kernel can tell of the source; `sourceClassOf` says what that is. */
  readonly from: SourceClass;
  /** Name of the interface it came in by; undefined for what this node sends itself, and where nobody asks. */
  readonly incomingInterface?: string | undefined;
  /**
   * Whether a socket on this node sends it, the node's own or a pod's, rather than that it arrives from elsewhere. The eBPF
   * mode alone asks. Undefined: what `pod` and `node` send is sent here, what comes from `outside` is not. So it is to be said of
   * pods of this node that nobody can tell, and of pods of other nodes.
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
