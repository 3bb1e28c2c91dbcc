import type { ForwardingTable } from '../model/forwarding/forwarding-table.ts';
import type { IpFamily } from '../model/ip/address.ts';
import {
  type EndpointSpec,
  node,
  type OptionsSpec,
  service,
  type ServiceSpec,
  serviceCidr,
  slice,
  tableOptions,
} from './builders.ts';
import { tableOf } from './cluster.ts';

/** Address number `index` of those that begin with `first`, such as 10.0.1.0 for 10 and 256. For large tables. */
export function addressNumber(first: number, index: number): string {
  return `${first}.${(index >> 16) & 255}.${(index >> 8) & 255}.${index & 255}`;
}

/** One Service in a test of a backend. The Node of the agent is `n1`. */
export interface SituationSpec extends ServiceSpec {
  readonly endpoints?: readonly (string | EndpointSpec)[];
}

/** The surroundings as a test of a backend writes them. */
export interface SituationOptions extends OptionsSpec {
  readonly serviceCidrs?: readonly string[];
  /** Addresses of Node `n1`. Default: the Node is unknown. */
  readonly nodeAddresses?: readonly string[];
}

/** The table of some Services `shop/<name>`, each with one slice; target ports are 8080, named like the ports. */
export function situation(
  services: Readonly<Record<string, SituationSpec>>,
  options: SituationOptions = {},
): ForwardingTable {
  const ipFamily: IpFamily = options.ipFamily ?? 'IPv4';
  return tableOf(
    {
      services: Object.entries(services).map(([name, spec]) => service(`shop/${name}`, spec)),
      slices: Object.entries(services).map(([name, spec]) =>
        slice(`shop/${name}`, {
          ipFamily,
          ports: (spec.ports ?? [{}]).map((port) => ({ ...port, port: 8080 })),
          endpoints: spec.endpoints ?? [],
        }),
      ),
      nodes: options.nodeAddresses === undefined ? [] : [node('n1', { addresses: options.nodeAddresses })],
      serviceCidrs: options.serviceCidrs === undefined ? [] : [serviceCidr('kubernetes', ...options.serviceCidrs)],
    },
    tableOptions(options),
  );
}

/** An endpoint on our node. */
export function here(ip: string): EndpointSpec {
  return { ip, node: 'n1' };
}

/** An endpoint on another node. */
export function there(ip: string): EndpointSpec {
  return { ip, node: 'n2' };
}
