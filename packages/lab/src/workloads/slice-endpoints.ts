import { ipFamilyOf, type IpFamily, tryParseIp } from '@switchyard/core';
import type { EndpointObject, EndpointSlice, Pod, Service } from '@switchyard/core/kubernetes';
import { isPodEnded, isPodReady, isPodTerminating } from './pod-facts.ts';

/** The ports of a slice. */
export type SlicePorts = NonNullable<EndpointSlice['ports']>;

/** The endpoints of one Service and family that share their port numbers. */
export interface EndpointGroup {
  readonly ports: SlicePorts;
  readonly endpoints: readonly EndpointObject[];
}

/** Zone by node name. */
export type ZonesByNode = ReadonlyMap<string, string>;

/** A pod and the Service whose endpoint it may be. */
interface EndpointInput {
  readonly service: Service;
  readonly ipFamily: IpFamily;
  readonly zones: ZonesByNode;
}

/**
 * The endpoints of a Service in one family, grouped by port numbers (pods may give a port name different numbers),
 * in the order of `pods`. Pods without an address of the family and pods that have ended are left out.
 */
export function endpointGroups(pods: readonly Pod[], input: EndpointInput): readonly EndpointGroup[] {
  const groups = new Map<string, { ports: SlicePorts; endpoints: EndpointObject[] }>();
  for (const pod of pods) {
    const address = isPodEnded(pod) ? undefined : podAddress(pod, input.ipFamily);
    if (address === undefined) continue;
    const ports = portsOf(input.service, pod);
    const key = portsKey(ports);
    const group = groups.get(key) ?? { ports, endpoints: [] };
    group.endpoints.push(endpointOf(pod, address, input));
    groups.set(key, group);
  }
  return [...groups.values()];
}

/** Key that is equal for equal ports; '' for null. */
export function portsKey(ports: EndpointSlice['ports']): string {
  return (ports ?? [])
    .map(({ name, protocol, port, appProtocol }) =>
      [name ?? '', protocol ?? 'TCP', port ?? '', appProtocol ?? ''].join('/'),
    )
    .sort()
    .join(',');
}

function podAddress(pod: Pod, ipFamily: IpFamily): string | undefined {
  const listed = pod.status?.podIPs?.map(({ ip }) => ip) ?? [pod.status?.podIP ?? ''];
  return listed.find((text) => {
    const ip = tryParseIp(text);
    return ip !== undefined && ipFamilyOf(ip) === ipFamily;
  });
}

function portsOf(service: Service, pod: Pod): SlicePorts {
  return (service.spec?.ports ?? []).flatMap((port) => {
    const number = targetPort(port.targetPort ?? port.port, port.protocol ?? 'TCP', pod);
    if (number === undefined) return [];
    const appProtocol = port.appProtocol === undefined ? {} : { appProtocol: port.appProtocol };
    return [{ name: port.name ?? '', protocol: port.protocol ?? 'TCP', port: number, ...appProtocol }];
  });
}

/** Returns undefined for a port name that no container port of the protocol has: the endpoint then lacks the port. */
function targetPort(target: number | string, protocol: string, pod: Pod): number | undefined {
  if (typeof target === 'number') return target;
  const ports = (pod.spec?.containers ?? []).flatMap((container) => container.ports ?? []);
  return ports.find(({ name, protocol: own }) => name === target && (own ?? 'TCP') === protocol)?.containerPort;
}

function endpointOf(pod: Pod, address: string, input: EndpointInput): EndpointObject {
  const { service, zones } = input;
  const serving = isPodReady(pod);
  const terminating = isPodTerminating(pod);
  const ready = service.spec?.publishNotReadyAddresses === true || (serving && !terminating);
  const nodeName = pod.spec?.nodeName;
  const zone = nodeName === undefined ? undefined : zones.get(nodeName);
  const hints = ready ? hintsOf(service.spec?.trafficDistribution, nodeName, zone) : undefined;
  const { name, namespace, uid } = pod.metadata;
  return {
    addresses: [address],
    conditions: { ready, serving, terminating },
    targetRef: {
      kind: 'Pod',
      ...(namespace === undefined ? {} : { namespace }),
      ...(name === undefined ? {} : { name }),
      ...(uid === undefined ? {} : { uid }),
    },
    ...(nodeName === undefined ? {} : { nodeName }),
    ...(zone === undefined ? {} : { zone }),
    ...(hints === undefined ? {} : { hints }),
  };
}

/** KEP-3015: every ready endpoint is for its own zone, with PreferSameNode also for its own node. */
function hintsOf(
  distribution: string | undefined,
  node: string | undefined,
  zone: string | undefined,
): EndpointObject['hints'] {
  const forZones = zone === undefined ? {} : { forZones: [{ name: zone }] };
  const forNodes = node === undefined ? {} : { forNodes: [{ name: node }] };
  switch (distribution) {
    case 'PreferSameZone':
    case 'PreferClose':
      return zone === undefined ? undefined : forZones;
    case 'PreferSameNode':
      return node === undefined ? undefined : { ...forZones, ...forNodes };
    default:
      return undefined;
  }
}
