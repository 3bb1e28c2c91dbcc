import type { IpFamily, Millis } from '@switchyard/core';
import { apiResources, type EndpointSlice, type Node, type Pod, type Service } from '@switchyard/core/kubernetes';
import type { ControllerContext } from './context.ts';
import { KeyedRunner } from './keyed-runner.ts';
import { apiTime, matchesLabels, objectKey, parseApiTime, readyTransition, selectorText, splitKey } from './facts.ts';
import { endpointGroups, planSlices, serviceNameLabel, sliceManager, type SlicePlan } from './slice-plan.ts';
import { nameSuffix } from './owned-pods.ts';

/** Writes the EndpointSlices of Services with a selector. */
export interface EndpointSliceController extends AsyncDisposable {
  /** Resolves when the slices of every Service that selects `pod` show the pod's current state. */
  settle(pod: Pod): Promise<void>;
}

const managedBy = 'endpointslice.kubernetes.io/managed-by';

/** Starts the controller; it works as soon as the watches run. */
export function startEndpointSliceController(context: ControllerContext): EndpointSliceController {
  const triggerTimes = createTriggerTimes();
  const { pods, nodes, services, slices } = context.watches;
  const runner = new KeyedRunner('endpointslice', context, (key, signal) =>
    reconcile(key, { context, triggerTimes }, signal),
  );
  const selecting = (pod: Pod | undefined): readonly string[] =>
    pod === undefined ? [] : [...services.values()].filter((service) => selects(service, pod)).map(objectKey);
  services.subscribe(({ before, after }) => {
    const service = after ?? before;
    if (service !== undefined && (hasSelector(service) || after === undefined)) runner.poke(objectKey(service));
  });
  pods.subscribe(({ before, after }) => {
    for (const key of new Set([...selecting(before), ...selecting(after)])) runner.poke(key);
  });
  slices.subscribe(({ before, after }) => {
    const slice = after ?? before;
    if (slice !== undefined && isOurs(slice)) runner.poke(serviceKeyOf(slice));
  });
  nodes.subscribe(({ before, after }) => {
    if (zoneOf(before) === zoneOf(after)) return;
    for (const service of services.values()) if (hasSelector(service)) runner.poke(objectKey(service));
  });
  return {
    settle: async (pod) => {
      await Promise.all(selecting(pod).map((key) => runner.settle(key)));
    },
    [Symbol.asyncDispose]: () => runner[Symbol.asyncDispose](),
  };
}

interface ReconcileParts {
  readonly context: ControllerContext;
  readonly triggerTimes: TriggerTimes;
}

async function reconcile(key: string, parts: ReconcileParts, signal: AbortSignal): Promise<void> {
  const { api, watches } = parts.context;
  await watches.nodes.listed; // zones
  const { namespace, name } = splitKey(key);
  const labelSelector = `${serviceNameLabel}=${name},${managedBy}=${sliceManager}`;
  const [service, slices] = await Promise.all([
    api.find(apiResources.services, { namespace, name }, signal),
    api.list(apiResources.endpointSlices, { namespace, labelSelector }, signal),
  ]);
  const uid = service?.metadata.uid;
  const isOwned = (slice: EndpointSlice): boolean => slice.metadata.ownerReferences?.[0]?.uid === uid;
  if (service === undefined) return parts.triggerTimes.forget(key);
  // Like the real controller: does not change slices of a Service without a selector.
  if (!hasSelector(service)) return;
  await writeSlices(service, slices.items.filter(isOwned), parts, signal);
}

async function writeSlices(
  service: Service,
  existing: readonly EndpointSlice[],
  { context, triggerTimes }: ReconcileParts,
  signal: AbortSignal,
): Promise<void> {
  const { api, watches } = context;
  const namespace = service.metadata.namespace ?? 'default';
  const labelSelector = selectorText(service.spec?.selector ?? {});
  const { items } = await api.list(apiResources.pods, { namespace, labelSelector }, signal);
  const pods = items.toSorted(byAge);
  const zones = new Map([...watches.nodes.values()].map((node) => [node.metadata.name ?? '', zoneOf(node) ?? '']));
  for (const [node, zone] of zones) if (zone === '') zones.delete(node);
  const triggerTime = triggerTimes.next(objectKey(service), service, pods);
  // the API server takes no other families
  const families = (service.spec?.ipFamilies ?? ['IPv4']) as readonly IpFamily[];
  for (const slice of existing) {
    const isForeignFamily = !families.some((family) => family === slice.addressType);
    if (isForeignFamily) await removeSlice(slice, context, signal);
  }
  for (const ipFamily of families) {
    const groups = endpointGroups(pods, { service, ipFamily, zones });
    const own = existing.filter((slice) => slice.addressType === ipFamily);
    await applyPlan(planSlices({ service, ipFamily, groups, existing: own, triggerTime }), context, signal);
  }
}

async function applyPlan(plan: SlicePlan, context: ControllerContext, signal: AbortSignal): Promise<void> {
  const { api, random } = context;
  for (const slice of plan.create) {
    const name = `${slice.metadata.generateName ?? ''}${nameSuffix(random)}`;
    await api.create(apiResources.endpointSlices, { ...slice, metadata: { ...slice.metadata, name } }, signal);
  }
  for (const slice of plan.update) await api.update(apiResources.endpointSlices, slice, signal);
  for (const slice of plan.remove) await removeSlice(slice, context, signal);
}

async function removeSlice(slice: EndpointSlice, { api }: ControllerContext, signal: AbortSignal): Promise<void> {
  const { namespace, name = '' } = slice.metadata;
  await api.delete(apiResources.endpointSlices, { namespace, name }, {}, signal);
}

function hasSelector(service: Service): boolean {
  const selector = service.spec?.selector;
  return service.spec?.type !== 'ExternalName' && selector !== undefined && Object.keys(selector).length > 0;
}

function selects(service: Service, pod: Pod): boolean {
  return (
    hasSelector(service) &&
    service.metadata.namespace === pod.metadata.namespace &&
    matchesLabels(service.spec?.selector ?? {}, pod.metadata.labels)
  );
}

function isOurs(slice: EndpointSlice): boolean {
  return slice.metadata.labels?.[managedBy] === sliceManager && slice.metadata.labels[serviceNameLabel] !== undefined;
}

function serviceKeyOf(slice: EndpointSlice): string {
  return `${slice.metadata.namespace ?? 'default'}/${slice.metadata.labels?.[serviceNameLabel] ?? ''}`;
}

function zoneOf(node: Node | undefined): string | undefined {
  return node?.metadata.labels?.['topology.kubernetes.io/zone'];
}

/** Oldest first, so that a new pod's endpoint comes after the ones it replaces. */
function byAge(left: Pod, right: Pod): number {
  const difference =
    Date.parse(left.metadata.creationTimestamp ?? '') - Date.parse(right.metadata.creationTimestamp ?? '');
  return difference || (left.metadata.name ?? '').localeCompare(right.metadata.name ?? '');
}

/**
 * Records the reported Ready transitions of a Service's pods. A slice's annotation has the oldest transition that it newly
 * reports. It has none if the change has no newer transition (a `deletionTimestamp`, a deleted pod, a second change within
 * one second).
 */
export interface TriggerTimes {
  /** Returns the time to write, RFC 3339 in whole seconds, or undefined. Each call marks the pods' transitions as reported. */
  next(key: string, service: Service, pods: readonly Pod[]): string | undefined;
  forget(key: string): void;
}

/** An empty memory: the first change of each Service is annotated with the Service's creation. */
export function createTriggerTimes(): TriggerTimes {
  const reportedByService = new Map<string, ReadonlyMap<string, Millis>>();
  return {
    next: (key, service, pods) => {
      const before = reportedByService.get(key);
      const now = new Map<string, Millis>();
      let oldest: Millis | undefined;
      for (const pod of pods) {
        const at = readyTransition(pod);
        if (at === undefined) continue;
        const name = pod.metadata.name ?? '';
        now.set(name, at);
        if (at > (before?.get(name) ?? -Infinity) && (oldest === undefined || at < oldest)) oldest = at;
      }
      reportedByService.set(key, now);
      const time = before === undefined ? parseApiTime(service.metadata.creationTimestamp) : oldest;
      return time === undefined ? undefined : apiTime(time);
    },
    forget: (key) => {
      reportedByService.delete(key);
    },
  };
}
