import { isDeepStrictEqual } from 'node:util';
import type { IpFamily } from '@switchyard/core';
import type { EndpointObject, EndpointSlice, Service } from '@switchyard/core/kubernetes';
import { type EndpointGroup, portsKey } from './slice-endpoints.ts';

/** Maximum number of endpoints in a slice; the real controller's default. */
export const maxEndpointsPerSlice = 100;
/** Value of the managed-by label of the slices made here and by the real controller. */
export const sliceManager = 'endpointslice-controller.k8s.io';
/** Label with the Service's name. */
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
