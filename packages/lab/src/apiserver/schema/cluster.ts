import {
  any,
  condition,
  flag,
  int,
  intPointer,
  list,
  listByKey,
  object,
  objectReference,
  type ObjectSchema,
  openObject,
  text,
  textList,
  textPointer,
  textSet,
  topLevel,
} from './schema.ts';

/** v1 Node. Fields of its status that are not listed are kept unchanged. */
export const nodeSchema: ObjectSchema = topLevel('Node', {
  spec: object('NodeSpec', {
    podCIDR: text,
    podCIDRs: textSet,
    providerID: text,
    unschedulable: flag,
    taints: list(object('Taint', { key: text, value: text, effect: text, timeAdded: text })),
    configSource: any,
    externalID: text,
  }),
  status: openObject('NodeStatus', {
    phase: text,
    conditions: listByKey('type', condition),
    addresses: listByKey('type', object('NodeAddress', { type: text, address: text })),
  }),
});

/** v1 Namespace. */
export const namespaceSchema: ObjectSchema = topLevel('Namespace', {
  spec: object('NamespaceSpec', { finalizers: textList }),
  status: object('NamespaceStatus', { phase: text, conditions: listByKey('type', condition) }),
});

const eventSource = object('EventSource', { component: text, host: text });

const eventSeries = object('EventSeries', { count: int, lastObservedTime: text });

/** v1 Event. */
export const eventSchema: ObjectSchema = topLevel('Event', {
  involvedObject: objectReference,
  reason: text,
  message: text,
  source: eventSource,
  firstTimestamp: text,
  lastTimestamp: text,
  count: int,
  type: text,
  eventTime: text,
  series: eventSeries,
  action: text,
  related: objectReference,
  reportingComponent: text,
  reportingInstance: text,
});

/** events.k8s.io/v1 Event. */
export const newEventSchema: ObjectSchema = topLevel('Event', {
  eventTime: text,
  series: eventSeries,
  reportingController: text,
  reportingInstance: text,
  action: text,
  reason: text,
  regarding: objectReference,
  related: objectReference,
  note: text,
  type: text,
  deprecatedSource: eventSource,
  deprecatedFirstTimestamp: text,
  deprecatedLastTimestamp: text,
  deprecatedCount: int,
});

/** coordination.k8s.io/v1 Lease. */
export const leaseSchema: ObjectSchema = topLevel('Lease', {
  spec: object('LeaseSpec', {
    holderIdentity: textPointer,
    leaseDurationSeconds: intPointer,
    acquireTime: textPointer,
    renewTime: textPointer,
    leaseTransitions: intPointer,
    strategy: textPointer,
    preferredHolder: textPointer,
  }),
});
