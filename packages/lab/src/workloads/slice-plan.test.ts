import type { EndpointSlice, Pod, Service } from '@switchyard/core/kubernetes';
import { expect, test } from 'vitest';
import { endpointGroups, planSlices, type SlicePlan } from './slice-plan.ts';

const zones = new Map([
  ['n1', 'zone-a'],
  ['n2', 'zone-b'],
]);
const http = { name: 'http', port: 80, targetPort: 'web' };

test('101 endpoints need two slices, and a new one goes where there is room', () => {
  const service = serviceWith({ ports: [{ port: 80 }] });
  const first = plan(
    service,
    Array.from({ length: 101 }, (_, index) => pod(index + 1)),
    [],
  );
  expect(first.create.map((slice) => slice.endpoints?.length)).toEqual([100, 1]);
  const existing = first.create.map((slice, index) => named(slice, `s${index}`));
  const next = plan(
    service,
    Array.from({ length: 102 }, (_, index) => pod(index + 1)),
    existing,
  );
  expect(next.create).toEqual([]);
  expect(next.update.map((slice) => [slice.metadata.name, slice.endpoints?.length])).toEqual([['s1', 2]]);
});

test('right slices are not written, even if the trigger time differs', () => {
  const service = serviceWith({});
  const existing = plan(service, [pod(1)], []).create.map((slice) => named(slice, 's'));
  expect(plan(service, [pod(1)], existing, '2026-01-01T00:00:00Z')).toEqual({ create: [], update: [], remove: [] });
});

test('an endpoint keeps its place, a pod made anew under the same address does not count as the same', () => {
  const service = serviceWith({});
  const existing = plan(service, [pod(1), pod(2)], []).create.map((slice) => named(slice, 's'));
  const again = { ...pod(1), metadata: { ...pod(1).metadata, uid: 'other' } };
  const [slice] = plan(service, [again, pod(2)], existing).update;
  expect(slice?.endpoints?.map(({ targetRef }) => targetRef?.uid)).toEqual(['uid-2', 'other']);
});

test('pods that give a port name different numbers are in different slices', () => {
  const service = serviceWith({ ports: [http] });
  const slices = plan(service, [pod(1), pod(2, { web: 9090 })], []).create;
  expect(slices.map((slice) => [slice.ports?.[0]?.port, slice.endpoints?.[0]?.addresses[0]])).toEqual([
    [8080, '10.244.1.1'],
    [9090, '10.244.1.2'],
  ]);
});

test('when its ports change, the slice is rewritten, not replaced', () => {
  const existing = plan(serviceWith({ ports: [{ port: 80 }] }), [pod(1)], []).create.map((slice) => named(slice, 's'));
  const next = plan(serviceWith({ ports: [{ port: 81 }] }), [pod(1)], existing);
  expect([next.create.length, next.remove.length]).toEqual([0, 0]);
  expect(next.update.map((slice) => [slice.metadata.name, slice.ports?.[0]?.port])).toEqual([['s', 81]]);
});

test('of two slices that lost their endpoints one stays, empty, and the other goes', () => {
  const service = serviceWith({ ports: [{ port: 80 }] });
  const pods = Array.from({ length: 101 }, (_, index) => pod(index + 1));
  const existing = plan(service, pods, []).create.map((slice, index) => named(slice, `s${index}`));
  const next = plan(service, [], existing);
  expect(next.update.map(({ metadata, endpoints, ports }) => [metadata.name, endpoints, ports])).toEqual([
    ['s0', null, null],
  ]);
  expect(next.remove.map(({ metadata }) => metadata.name)).toEqual(['s1']);
});

test('a dual-stack pod is an endpoint of each family', () => {
  const groups = endpointGroups([pod(1)], { service: serviceWith({}), ipFamily: 'IPv6', zones });
  expect(groups[0]?.endpoints[0]?.addresses).toEqual(['fd00:10:244:1::1']);
});

test.each([
  { what: 'is left out when it has ended', phase: 'Succeeded' as const, expected: [] },
  { what: 'is left out without an address', podIPs: [], expected: [] },
  { what: 'is all false before it is ready', isReady: false, expected: ['false false false'] },
  { what: 'is ready and serving when Ready', expected: ['true true false'] },
  { what: 'serves on while terminating', isTerminating: true, expected: ['false true true'] },
  {
    what: 'is only terminating when no longer Ready',
    isTerminating: true,
    isReady: false,
    expected: ['false false true'],
  },
  { what: 'is published as ready although it is not', publish: true, isReady: false, expected: ['true false false'] },
  {
    what: 'is published as ready even when terminating',
    publish: true,
    isTerminating: true,
    expected: ['true true true'],
  },
])('a pod $what', ({ publish, expected, ...spec }) => {
  const service = serviceWith({ publishNotReadyAddresses: publish === true });
  const [group] = endpointGroups([pod(1, {}, spec)], { service, ipFamily: 'IPv4', zones });
  const shown = (group?.endpoints ?? []).map(({ conditions: c }) => `${c?.ready} ${c?.serving} ${c?.terminating}`);
  expect(shown).toEqual(expected);
});

test.each([
  { distribution: undefined, expected: undefined },
  { distribution: 'PreferSameZone', expected: { forZones: [{ name: 'zone-a' }] } },
  { distribution: 'PreferClose', expected: { forZones: [{ name: 'zone-a' }] } },
  { distribution: 'PreferSameNode', expected: { forZones: [{ name: 'zone-a' }], forNodes: [{ name: 'n1' }] } },
])('trafficDistribution $distribution gives a ready endpoint its hints', ({ distribution, expected }) => {
  const service = serviceWith(distribution === undefined ? {} : { trafficDistribution: distribution });
  const pods = [pod(1), pod(2, {}, { isReady: false })];
  const [group] = endpointGroups(pods, { service, ipFamily: 'IPv4', zones });
  expect(group?.endpoints.map(({ hints }) => hints)).toEqual([expected, undefined]);
});

test('a slice carries labels, owner and the headless mark of its Service', () => {
  const [slice] = plan(serviceWith({ clusterIP: 'None' }), [pod(1)], [], '2026-01-01T00:00:00Z').create;
  expect(slice?.metadata).toEqual({
    generateName: 'web-',
    namespace: 'shop',
    labels: {
      team: 'x',
      'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
      'kubernetes.io/service-name': 'web',
      'service.kubernetes.io/headless': '',
    },
    annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': '2026-01-01T00:00:00Z' },
    ownerReferences: [
      { apiVersion: 'v1', kind: 'Service', name: 'web', uid: 'svc', controller: true, blockOwnerDeletion: true },
    ],
  });
});

interface PodState {
  readonly phase?: 'Running' | 'Succeeded';
  readonly podIPs?: readonly { readonly ip: string }[];
  readonly isReady?: boolean;
  readonly isTerminating?: boolean;
}

function pod(index: number, ports: Readonly<Record<string, number>> = {}, state: PodState = {}): Pod {
  const containerPorts = Object.entries({ web: 8080, ...ports }).map(([name, containerPort]) => ({
    name,
    containerPort,
  }));
  return {
    metadata: {
      name: `p${index}`,
      namespace: 'shop',
      uid: `uid-${index}`,
      ...(state.isTerminating === true ? { deletionTimestamp: '2026-01-01T00:00:30Z' } : {}),
    },
    spec: { nodeName: 'n1', containers: [{ name: 'c', ports: containerPorts }] },
    status: {
      phase: state.phase ?? 'Running',
      podIPs: state.podIPs ?? [{ ip: `10.244.1.${index}` }, { ip: `fd00:10:244:1::${index}` }],
      conditions: [{ type: 'Ready', status: state.isReady === false ? 'False' : 'True' }],
    },
  };
}

function serviceWith(spec: NonNullable<Service['spec']>): Service {
  return {
    metadata: { name: 'web', namespace: 'shop', uid: 'svc', labels: { team: 'x' } },
    spec: { selector: { app: 'web' }, ports: [http], ...spec },
  };
}

function plan(
  service: Service,
  pods: readonly Pod[],
  existing: readonly EndpointSlice[],
  triggerTime?: string,
): SlicePlan {
  const groups = endpointGroups(pods, { service, ipFamily: 'IPv4', zones });
  return planSlices({ service, ipFamily: 'IPv4', groups, existing, triggerTime });
}

function named(slice: EndpointSlice, name: string): EndpointSlice {
  return { ...slice, metadata: { ...slice.metadata, name } };
}
