import {
  buildTable,
  type EndpointSliceRecord,
  type ForwardingTable,
  type IpAddress,
  type IpFamily,
  ipFamilyOf,
  nodeName,
  parseIp,
  type Port,
  type ServiceForwarding,
  type ServiceKey,
  serviceKey,
  type ServicePortKey,
  type ServiceRecord,
  sliceKey,
  type TableOptions,
} from '@switchyard/core';
import type { LoadBalancerSpec, PortSpec } from '../spec/load-balancer-spec.ts';
import type { KernelRequest } from './kernel-forwarder.ts';
import { usableTargets } from './usable-targets.ts';

/**
 * The forwarding table of the proxy path's UDP and SCTP ports in one family: virtual addresses are load-balancer IPs, always
 * masqueraded; targets are endpoints. It is core's, built from records made up for the purpose, so that policy is decided in one place.
 */
export function proxiedTable(request: KernelRequest, ipFamily: IpFamily): ForwardingTable {
  const services = new Map<ServiceKey, ServiceRecord>();
  const slices = new Map<ServiceKey, readonly EndpointSliceRecord[]>();
  for (const spec of request.specs) {
    if (spec.path !== 'proxy') continue;
    for (const port of spec.ports) {
      if (port.protocol === 'TCP') continue;
      const service = serviceOf(spec, port, { ipFamily, ownAddresses: request.ownAddresses });
      if (service === undefined) continue;
      services.set(service.key, service);
      slices.set(service.key, slicesOf(service.key, { spec, port, ipFamily }, request));
    }
  }
  const state = { services, slicesOf: (key: ServiceKey) => slices.get(key) ?? [], nodes: new Map(), serviceCidrs: [] };
  const table = buildTable(state, 'all', undefined, optionsOf(ipFamily));
  return { ...table, services: withoutClusterIps(table) };
}

function optionsOf(ipFamily: IpFamily): TableOptions {
  return {
    ipFamily,
    nodeName: nodeName(''),
    masqueradeAll: false,
    terminatingFallback: 'on',
    externalIps: 'ignore',
    podDetector: { kind: 'none' },
    nodePortCidrs: [],
  };
}

/** A Service without a cluster IP is none to core. No packet goes to this one, and its frontends are removed again. */
const noClusterIp: Readonly<Record<IpFamily, IpAddress>> = { IPv4: parseIp('0.0.0.0'), IPv6: parseIp('::') };

/** One record for each port: ports of a load balancer may be served on different addresses of it. */
function serviceOf(
  spec: LoadBalancerSpec,
  port: PortSpec,
  { ipFamily, ownAddresses }: { readonly ipFamily: IpFamily; readonly ownAddresses: readonly IpAddress[] },
): ServiceRecord | undefined {
  const addresses = [...port.addresses, ...ownAddresses].filter((ip) => ipFamilyOf(ip) === ipFamily);
  if (addresses.length === 0) return undefined;
  return {
    key: keyOf(spec, port),
    type: 'LoadBalancer',
    clusterIps: [noClusterIp[ipFamily]],
    isHeadless: false,
    ipFamilies: [ipFamily],
    ports: [{ name: '', protocol: port.protocol, port: port.port, nodePort: undefined }],
    externalIps: [],
    loadBalancerIngress: addresses.map((ip) => ({ ip, ipMode: 'VIP' })),
    loadBalancerSourceRanges: spec.sourceRanges,
    externalTrafficPolicy: 'Cluster', // the one that masquerades
    internalTrafficPolicy: 'Cluster',
    healthCheckNodePort: undefined,
    sessionAffinity: spec.sessionAffinity,
    serviceProxyName: undefined,
  };
}

/** Names no other load balancer has, for logs: `kind.default/dns.53-udp`. Services of several clusters may be alike in all else. */
function keyOf({ id }: LoadBalancerSpec, { port, protocol }: PortSpec): ServiceKey {
  const slash = id.service.indexOf('/');
  const namespace = `${id.cluster}.${id.service.slice(0, slash)}`;
  return serviceKey(namespace, `${id.service.slice(slash + 1)}.${port}-${protocol.toLowerCase()}`);
}

interface PortOfFamily {
  readonly spec: LoadBalancerSpec;
  readonly port: PortSpec;
  readonly ipFamily: IpFamily;
}

/** One slice per port number. Targets that are not ready keep their flows and get no new ones. */
function slicesOf(
  service: ServiceKey,
  of: PortOfFamily,
  { health }: Pick<KernelRequest, 'health'>,
): readonly EndpointSliceRecord[] {
  const { forNew, forOld } = usableTargets(of, health);
  const numbers = new Set<Port>(forOld.map(({ port }) => port));
  return [...numbers].map((number) => ({
    key: sliceKey('slices', `${service}-${number}`),
    service,
    ipFamily: of.ipFamily,
    ports: [{ name: '', protocol: of.port.protocol, port: number }],
    endpoints: forOld
      .filter(({ port }) => port === number)
      .map((target) => ({
        address: target.address,
        ready: forNew.includes(target),
        serving: true,
        terminating: !forNew.includes(target),
        nodeName: nodeName(target.node),
        zoneHints: [],
        nodeHints: [],
      })),
    lastChangeTriggerTime: undefined,
  }));
}

function withoutClusterIps({ services }: ForwardingTable): ReadonlyMap<ServicePortKey, ServiceForwarding> {
  const kept = [...services.values()].map((service) => ({
    ...service,
    frontends: service.frontends.filter(({ kind }) => kind !== 'clusterIP'),
    lostFrontends: service.lostFrontends.filter(({ frontend }) => frontend.kind !== 'clusterIP'),
  }));
  return new Map(kept.map((service) => [service.key, service]));
}
