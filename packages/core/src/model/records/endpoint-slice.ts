import type { IpAddress, IpFamily } from '../ip/address.ts';
import type { Port, Protocol } from '../ip/port.ts';
import type { Millis } from '../../base/time.ts';
import type { NodeName, ServiceKey, SliceKey } from './keys.ts';

/** One endpoint of a slice; conditions are defaulted as the API says (KEP-1672). */
export interface EndpointRecord {
  /** `addresses[0]`: the only one a proxy may use. */
  readonly address: IpAddress;
  /** Missing means true. */
  readonly ready: boolean;
  /** Missing means true. */
  readonly serving: boolean;
  /** Missing means false. */
  readonly terminating: boolean;
  readonly nodeName: NodeName | undefined;
  /** `hints.forZones[].name`; empty when there is no hint. */
  readonly zoneHints: readonly string[];
  /** `hints.forNodes[].name` (KEP-3015); empty when there is no hint. */
  readonly nodeHints: readonly string[];
}

/** A port of a slice that has a name and a number; others are left out. */
export interface SlicePortRecord {
  readonly name: string;
  readonly protocol: Protocol;
  readonly port: Port;
}

/** The fields of an EndpointSlice the dataplane uses. FQDN slices never become records. */
export interface EndpointSliceRecord {
  readonly key: SliceKey;
  /** From the label `kubernetes.io/service-name`; a slice without it never becomes a record. */
  readonly service: ServiceKey;
  readonly ipFamily: IpFamily;
  readonly ports: readonly SlicePortRecord[];
  readonly endpoints: readonly EndpointRecord[];
  /** `endpoints.kubernetes.io/last-change-trigger-time`, if present. Whole seconds. */
  readonly lastChangeTriggerTime: Millis | undefined;
}
