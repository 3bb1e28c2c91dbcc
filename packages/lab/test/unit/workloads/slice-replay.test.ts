import type { EndpointSlice, Pod, Service } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { endpointGroups, planSlices, triggerTimeAnnotation } from '../../../src/workloads/slice-plan.ts';
import { createTriggerTimes } from '../../../src/workloads/endpointslice-controller.ts';
import { readRollout, type RecordedEvent, type RecordedRollout } from '../../support/rollout-fixture.ts';

test.each([1, 2] as const)('with %i replicas, the slices after every pod event are those of Kubernetes', (replicas) => {
  const { events } = readRollout(replicas);
  const recorded = events.filter((event) => event.kind === 'EndpointSlice' && event.type !== 'DELETED');
  expect(recorded.length).toBe(replicas === 1 ? 11 : 21);
  expect(replay(events).map(summary)).toEqual(recorded.map(({ object }) => summary(object as EndpointSlice)));
});

test('the recorded Services own their slices in the way rendered here', () => {
  const { events } = readRollout(1);
  const recorded = events.find((event) => event.kind === 'EndpointSlice')?.object as EndpointSlice;
  const { name: _n, uid: _u, resourceVersion: _r, generation: _g, ...metadata } = recorded.metadata;
  expect({ ...replay(events)[0], kind: undefined }).toEqual({ ...recorded, metadata, kind: undefined });
});

/** Plans after each pod event in the order of resourceVersion, as the real controller did, and returns all writes. */
function replay(events: RecordedRollout['events']): readonly EndpointSlice[] {
  const service = serviceOf(events);
  const pods = new Map<string, Pod>();
  const triggerTimes = createTriggerTimes();
  const zones = new Map([['node1', 'z1']]);
  const writes: EndpointSlice[] = [];
  const reconcile = (): void => {
    const list = [...pods.values()];
    const groups = endpointGroups(list, { service, ipFamily: 'IPv4', zones });
    const triggerTime = triggerTimes.next('roll/x', service, list);
    const existing = writes.slice(-1);
    const plan = planSlices({ service, ipFamily: 'IPv4', groups, existing, triggerTime });
    expect(plan.remove).toEqual([]);
    expect(plan.create.length).toBe(writes.length === 0 ? 1 : 0);
    writes.push(...plan.create, ...plan.update);
  };
  reconcile();
  for (const event of events) {
    if (event.kind !== 'Pod') continue;
    if (event.type === 'DELETED') pods.delete(event.object.metadata.name ?? '');
    else pods.set(event.object.metadata.name ?? '', event.object);
    reconcile();
  }
  return writes;
}

/** The recorded streams lack the Service; the slices contain its relevant fields. */
function serviceOf(events: readonly RecordedEvent[]): Service {
  const slice = events.find((event) => event.kind === 'EndpointSlice')?.object as EndpointSlice;
  const owner = slice.metadata.ownerReferences![0]!;
  const app = slice.metadata.labels!['app']!;
  return {
    metadata: {
      name: owner.name,
      namespace: 'roll',
      uid: owner.uid,
      labels: { app },
      creationTimestamp: slice.metadata.annotations![triggerTimeAnnotation]!,
    },
    spec: { selector: { app }, ports: [{ name: 'http', port: 80, targetPort: 'http' }] },
  };
}

function summary(slice: EndpointSlice): unknown {
  const { endpoints, ports, metadata } = slice;
  return { endpoints, ports, triggerTime: metadata.annotations?.[triggerTimeAnnotation] ?? null };
}
