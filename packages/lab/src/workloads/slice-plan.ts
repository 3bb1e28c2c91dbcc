import { isDeepStrictEqual } from 'node:util';
import { type IpFamily, ipFamilyOf, tryParseIp } from '@switchyard/core';
import type { EndpointObject, EndpointSlice, Pod, Service } from '@switchyard/core/kubernetes';
import { isPodEnded, isPodReady, isPodTerminating } from './facts.ts';

/** Maximum number of endpoints in a slice; the real controller's default. */
const maxEndpointsPerSlice = 100;
/** Value of the managed-by label of the slices made here and by the real controller. */
export const sliceManager = 'endpointslice-controller.k8s.io';
export const serviceNameLabel = 'kubernetes.io/service-name';
const managedByLabel = 'endpointslice.kubernetes.io/managed-by';
const headlessLabel = 'service.kubernetes.io/headless';
/** Annotation by which clients measure how long a change took to reach them. */
export const triggerTimeAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time';

/** Writes that update the slices of one Service and family. Slices to create have no name yet. */
export interface SlicePlan {
  readonly create: readonly EndpointSlice[];
  readonly update: readonly EndpointSlice[];
  readonly remove: readonly EndpointSlice[];
}

/** Input of `planSlices`. `existing` are the slices of this Service and family that this controller manages. */
export interface SlicePlanInput {
  readonly service: Service;
  readonly ipFamily: IpFamily;
  readonly groups: readonly EndpointGroup[];
  readonly existing: readonly EndpointSlice[];
  /** RFC 3339; undefined removes the annotation from what is written. */
  readonly triggerTime: string | undefined;
}

/** Contents of one slice, and the object that it goes into. */
interface Packed {
  readonly slice: EndpointSlice | undefined;
  readonly ports: EndpointGroup['ports'] | null;
  readonly endpoints: readonly EndpointObject[] | null;
}

/**
 * Plans the fewest writes: an endpoint keeps its slice and its position; new ones fill slices with room, then new slices.
 * An unused slice is rewritten before a new one is created; the last slice of a
 * Service without endpoints stays, with `endpoints` and `ports` null. A slice with the right
 * contents is not written, even if its annotation differs.
 */
export function planSlices(input: SlicePlanInput): SlicePlan {
  const packed = input.groups.flatMap((group) => packGroup(group, input.existing));
  const wanted: Packed[] = packed.length > 0 ? packed : [{ slice: undefined, ports: null, endpoints: null }];
  const used = new Set(wanted.map(({ slice }) => slice));
  const spare = input.existing.filter((slice) => !used.has(slice));
  const create: EndpointSlice[] = [];
  const update: EndpointSlice[] = [];
  for (const one of wanted) {
    const target = one.slice ?? spare.shift();
    const next = render(input, one, target);
    if (target === undefined) create.push(next);
    else if (!hasSameContents(target, next)) update.push(next);
  }
  return { create, update, remove: spare };
}

function packGroup(group: EndpointGroup, existing: readonly EndpointSlice[]): Packed[] {
  const key = portsKey(group.ports);
  const missing = new Map(group.endpoints.map((endpoint) => [endpointKey(endpoint), endpoint]));
  const packed = existing
    .filter((slice) => slice.ports !== null && slice.ports !== undefined && portsKey(slice.ports) === key)
    .map((slice) => {
      const endpoints = (slice.endpoints ?? []).flatMap((old) => {
        const now = missing.get(endpointKey(old));
        missing.delete(endpointKey(old));
        return now === undefined ? [] : [now];
      });
      return { slice: slice as EndpointSlice | undefined, ports: group.ports, endpoints };
    });
  const rest = [...missing.values()];
  for (const { endpoints } of packed) endpoints.push(...rest.splice(0, maxEndpointsPerSlice - endpoints.length));
  while (rest.length > 0) {
    packed.push({ slice: undefined, ports: group.ports, endpoints: rest.splice(0, maxEndpointsPerSlice) });
  }
  return packed.filter(({ endpoints }) => endpoints.length > 0);
}

/** Identity of an endpoint: pod and address. */
function endpointKey(endpoint: EndpointObject): string {
  return `${endpoint.targetRef?.uid ?? ''} ${endpoint.addresses.join(',')}`;
}

function render(input: SlicePlanInput, contents: Packed, target: EndpointSlice | undefined): EndpointSlice {
  const { service, ipFamily, triggerTime } = input;
  const { name = '', namespace, uid = '' } = service.metadata;
  const { [triggerTimeAnnotation]: _, ...others } = target?.metadata.annotations ?? {};
  const annotations = triggerTime === undefined ? others : { ...others, [triggerTimeAnnotation]: triggerTime };
  const owner = { apiVersion: 'v1', kind: 'Service', name, uid, controller: true, blockOwnerDeletion: true };
  const { annotations: _old, ...kept } = target?.metadata ?? { generateName: `${name}-` };
  return {
    metadata: {
      ...kept,
      ...(namespace === undefined ? {} : { namespace }),
      labels: sliceLabels(service),
      ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      ownerReferences: [owner],
    },
    addressType: ipFamily,
    endpoints: contents.endpoints,
    ports: contents.ports,
  };
}

function sliceLabels(service: Service): Readonly<Record<string, string>> {
  const { [headlessLabel]: _, ...own } = service.metadata.labels ?? {};
  return {
    ...own,
    ...(service.spec?.clusterIP === 'None' ? { [headlessLabel]: '' } : {}),
    [managedByLabel]: sliceManager,
    [serviceNameLabel]: service.metadata.name ?? '',
  };
}

/** Whether the API's slice equals `next`; null and an empty list are equal. */
function hasSameContents(current: EndpointSlice, next: EndpointSlice): boolean {
  const contents = (slice: EndpointSlice): unknown => ({
    endpoints: (slice.endpoints ?? []).map(canonicalEndpoint),
    ports: portsKey(slice.ports),
    labels: slice.metadata.labels,
    owner: slice.metadata.ownerReferences?.map(({ uid }) => uid),
  });
  return isDeepStrictEqual(contents(current), contents(next));
}

function canonicalEndpoint(endpoint: EndpointObject): unknown {
  const { addresses, conditions, hints, nodeName, zone, targetRef } = endpoint;
  return {
    addresses,
    ready: conditions?.ready,
    serving: conditions?.serving,
    terminating: conditions?.terminating,
    zones: hints?.forZones?.map(({ name }) => name),
    nodes: hints?.forNodes?.map(({ name }) => name),
    nodeName,
    zone,
    pod: targetRef?.uid,
  };
}

type SlicePorts = NonNullable<EndpointSlice['ports']>;

/** The endpoints of one Service and family that share their port numbers. */
export interface EndpointGroup {
  readonly ports: SlicePorts;
  readonly endpoints: readonly EndpointObject[];
}

type ZonesByNode = ReadonlyMap<string, string>;

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
function portsKey(ports: EndpointSlice['ports']): string {
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
