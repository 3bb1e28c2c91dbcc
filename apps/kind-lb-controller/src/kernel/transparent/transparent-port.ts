import { allowedSources, type Cidr, type IpAddress, ipFamilyOf, type Port, type Protocol } from '@switchyard/core';
import type { LoadBalancerSpec, PortSpec, Target } from '../../spec/load-balancer-spec.ts';
import type { KernelRequest } from '../kernel-forwarder.ts';
import { usableTargets } from '../usable-targets.ts';

/** One virtual address, port and protocol whose packets are forwarded to nodes unchanged. */
export interface TransparentPort {
  readonly address: IpAddress;
  readonly port: Port;
  readonly protocol: Protocol;
  readonly allowedSources: 'any' | readonly Cidr[];
  readonly sessionAffinity: LoadBalancerSpec['sessionAffinity'];
  /** Link addresses of nodes, of the address' family: those that get new connections. Empty: connections are refused. */
  readonly forNew: readonly IpAddress[];
  /** Link addresses that traffic without connections may continue to use. */
  readonly forOld: readonly IpAddress[];
  /** Link addresses of all targets. */
  readonly present: readonly IpAddress[];
}

/** Ports of all load balancers whose path is `transparent`. Of two with the same address, port and protocol the first wins. */
export function transparentPorts({
  specs,
  health,
}: Pick<KernelRequest, 'specs' | 'health'>): readonly TransparentPort[] {
  const found = new Map<string, TransparentPort>();
  for (const spec of specs) {
    if (spec.path !== 'transparent') continue;
    for (const port of spec.ports) {
      for (const address of port.addresses) {
        const key = `${address} ${port.port} ${port.protocol}`;
        if (!found.has(key)) found.set(key, transparentPort({ spec, port, address }, { health }));
      }
    }
  }
  return [...found.values()];
}

function transparentPort(
  { spec, port, address }: { readonly spec: LoadBalancerSpec; readonly port: PortSpec; readonly address: IpAddress },
  { health }: Pick<KernelRequest, 'health'>,
): TransparentPort {
  const ipFamily = ipFamilyOf(address);
  const { forNew, forOld, present } = usableTargets({ spec, port, ipFamily }, health);
  return {
    address,
    port: port.port,
    protocol: port.protocol,
    allowedSources: allowedSources({ ipFamily, ranges: spec.sourceRanges, vips: [], nodeIp: undefined }),
    sessionAffinity: spec.sessionAffinity,
    forNew: addressesOf(forNew),
    forOld: addressesOf(forOld),
    present: addressesOf(present),
  };
}

function addressesOf(targets: readonly Target[]): readonly IpAddress[] {
  return [...new Set(targets.map(({ address }) => address))];
}
