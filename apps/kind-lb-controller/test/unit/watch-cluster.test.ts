import { millis, noopLogger, type ServiceKey, systemClock } from '@switchyard/core';
import {
  apiResources,
  defaultTls,
  fixedCredentials,
  newApiClient,
  type ObjectClient,
  type Service,
} from '@switchyard/core/kubernetes';
import { createApiClient, startApiServer } from '@switchyard/lab';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ClusterChange, type ClusterView, isInSync } from '../../src/cluster/cluster-store.ts';
import { watchCluster } from '../../src/cluster/watch-cluster.ts';
import { rawNode } from '../../src/testing/builders.ts';
import { rawSlice } from '../../src/testing/plan-input.ts';

// The lab's API server over loopback HTTP and real reflectors.
const signal = AbortSignal.timeout(60_000);
let stack: AsyncDisposableStack;
let api: ObjectClient;
let view: ClusterView | undefined;
/** Since it was emptied last; `all`, or the keys of Services. */
let changes: string[];

beforeEach(async () => {
  stack = new AsyncDisposableStack();
  const server = stack.use(await startApiServer());
  const { url } = await server.listen({ host: '127.0.0.1', port: 0 });
  api = stack.use(createApiClient({ url }));
  view = undefined;
  changes = [];
  await createNode('node1');
  await createService('web', 'LoadBalancer');
  await createService('internal', 'ClusterIP');
  const connection = { url: new URL(url), tls: defaultTls, credentials: fixedCredentials(undefined) };
  const client = stack.use(newApiClient(connection, { clock: systemClock, userAgent: 'test' }));
  const stop = new AbortController();
  const onChange = (latest: ClusterView, change: ClusterChange): void => {
    view = latest;
    changes.push(change.kind === 'all' ? 'all' : [...change.keys].join());
  };
  const task = watchCluster({ client, clock: systemClock, random: () => 0.5, log: noopLogger, onChange }, stop.signal);
  stack.defer(async () => {
    stop.abort();
    await task.catch(() => undefined);
  });
  await eventually(() => expect(view !== undefined && isInSync(view)).toBe(true));
  changes = [];
});
afterEach(() => stack.disposeAsync());

const createNode = (name: string): Promise<unknown> =>
  api.create(
    apiResources.nodes,
    { apiVersion: 'v1', kind: 'Node', ...rawNode(name, ['172.18.0.11']) } as never,
    signal,
  );
const createService = (name: string, type: string): Promise<unknown> => {
  const spec = { type, ports: [{ port: 80, protocol: 'TCP' }] };
  const object = { apiVersion: 'v1', kind: 'Service', metadata: { name, namespace: 'default' }, spec };
  return api.create(apiResources.services, object as unknown as Service, signal);
};
const createSlice = (service: string, endpoint: string): Promise<unknown> => {
  const object = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', ...rawSlice(service, [endpoint]) };
  return api.create(apiResources.endpointSlices, object as never, signal);
};
const patchNode = (body: Readonly<Record<string, unknown>>, subresource?: 'status'): Promise<unknown> =>
  api.patch(
    apiResources.nodes,
    { name: 'node1', ...(subresource === undefined ? {} : { subresource }) },
    { kind: 'merge', body },
    signal,
  );
const patchService = (name: string, body: Readonly<Record<string, unknown>>): Promise<unknown> =>
  api.patch(apiResources.services, { name }, { kind: 'merge', body }, signal);
const endpointsOf = (service: string): readonly string[] =>
  view?.slices?.slicesOf(service as ServiceKey).flatMap(({ endpoints }) => endpoints.map(({ address }) => address)) ??
  [];

async function eventually(expectation: () => void): Promise<void> {
  const deadline = systemClock.monotonic() + 8000;
  for (;;) {
    try {
      return expectation();
    } catch (error) {
      if (systemClock.monotonic() > deadline) throw error;
      await systemClock.sleep(millis(10), signal);
    }
  }
}

test('the heartbeat of a Node is no change, a deletion taint is one', async () => {
  const heartbeat = { type: 'Ready', status: 'True', lastHeartbeatTime: '2026-11-21T10:00:00Z' };
  await patchNode({ status: { conditions: [heartbeat] } }, 'status');
  await patchNode({ metadata: { labels: { touched: 'yes' } } });
  await patchNode({ spec: { taints: [{ key: 'ToBeDeletedByClusterAutoscaler', effect: 'NoSchedule' }] } });
  await eventually(() => expect(view?.nodes?.get('node1' as never)?.exclusion).toBe('taint'));
  expect(changes).toEqual(['all']);
});

test('only Services that concern load balancers are kept, until they no longer do', async () => {
  expect([...(view?.services?.keys() ?? [])]).toEqual(['default/web']);
  await patchService('internal', { spec: { type: 'LoadBalancer' } });
  await eventually(() => expect(view?.services?.get('default/internal' as ServiceKey)).toBeDefined());
  await patchService('internal', { spec: { type: 'ClusterIP' } });
  await eventually(() => expect(view?.services?.get('default/internal' as ServiceKey)).toBeUndefined());
  expect(changes).toEqual(['default/internal', 'default/internal']);
});

test('slices of load balancers are reported; others are kept for when their Service becomes one', async () => {
  await createSlice('default/internal', '10.244.1.5@node1');
  await createSlice('default/web', '10.244.1.6@node1');
  await eventually(() => expect(endpointsOf('default/web')).toEqual(['10.244.1.6']));
  expect(endpointsOf('default/internal')).toEqual(['10.244.1.5']);
  expect(changes).toEqual(['default/web']);
});

test('own annotations are included, those of others are not', async () => {
  const annotations = { 'lb.switchyard.dev/path': 'transparent', 'example.com/x': 'y' };
  await patchService('web', { metadata: { annotations, finalizers: ['service.kubernetes.io/load-balancer-cleanup'] } });
  await eventually(() => expect(changes).toEqual(['default/web']));
  expect(view?.services?.get('default/web' as ServiceKey)).toMatchObject({
    annotations: { 'lb.switchyard.dev/path': 'transparent' },
    finalizers: ['service.kubernetes.io/load-balancer-cleanup'],
    isBeingDeleted: false,
  });
});
