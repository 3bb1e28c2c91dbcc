import type { ForwardingTable, IpFamily } from '@switchyard/core';
import {
  type EndpointSpec,
  type OptionsSpec,
  service,
  type ServiceSpec,
  slice,
  tableOf,
  tableOptions,
} from '@switchyard/core/testing';

/** One Service as a test of this backend writes it. Node `n1` is ours. */
export interface SituationSpec extends ServiceSpec {
  readonly endpoints?: readonly (string | EndpointSpec)[];
}

/** The table of some Services `shop/<name>`, each with one slice; target ports are 8080, named like the ports. */
export function situation(
  services: Readonly<Record<string, SituationSpec>>,
  options: OptionsSpec = {},
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
