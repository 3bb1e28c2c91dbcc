import { expect, test } from 'vitest';
import { services, startHarness, summary, type Harness, type Wire } from './harness.ts';

const cleanup = 'service.kubernetes.io/load-balancer-cleanup';

async function withFinalizer(api: Harness): Promise<Wire> {
  const { metadata } = await api.service('web', { spec: { type: 'LoadBalancer' } });
  const { resourceVersion } = metadata;
  const patch = { metadata: { resourceVersion, finalizers: [cleanup] } };
  const answer = await api.patch(`${services}/web`, 'merge', patch);
  expect(answer.body.metadata.finalizers).toEqual([cleanup]);
  return answer.body;
}

test('a Service with a finalizer stays, marked, until the finalizer is gone', async () => {
  await using api = await startHarness();
  await withFinalizer(api);
  const watch = await api.watch('/api/v1/services?watch=true');
  expect((await api.send('DELETE', `${services}/web`)).status).toBe(200);
  const marked = await api.get(`${services}/web`);
  expect(marked.body.metadata).toMatchObject({ finalizers: [cleanup], deletionTimestamp: expect.any(String) });
  const { resourceVersion } = marked.body.metadata;
  const last = await api.patch(`${services}/web`, 'merge', { metadata: { resourceVersion, finalizers: null } });
  expect(last.status).toBe(200);
  expect((await api.get(`${services}/web`)).status).toBe(404);
  await watch.until(3);
  expect(summary(watch.events)).toEqual(['ADDED web', 'MODIFIED web', 'DELETED web']);
  // Its addresses and ports are free again.
  await api.service('web', { spec: { type: 'LoadBalancer' } });
});

test('no client can add a finalizer to a Service that is being deleted', async () => {
  await using api = await startHarness();
  await withFinalizer(api);
  await api.send('DELETE', `${services}/web`);
  const patch = { metadata: { finalizers: [cleanup, 'example.com/late'] } };
  const answer = await api.patch(`${services}/web`, 'merge', patch);
  // The real server answers 422 here; this one keeps what was there. Either way nothing is added.
  expect([200, 422]).toContain(answer.status);
  expect((await api.get(`${services}/web`)).body.metadata.finalizers).toEqual([cleanup]);
});

test('a patch of finalizers that is based on an old version is refused', async () => {
  await using api = await startHarness();
  const { metadata } = await api.service('web', { spec: { type: 'LoadBalancer' } });
  await api.patch(`${services}/web`, 'merge', { metadata: { labels: { a: 'b' } } });
  const { resourceVersion } = metadata;
  const patch = { metadata: { resourceVersion, finalizers: [cleanup] } };
  expect((await api.patch(`${services}/web`, 'merge', patch)).status).toBe(409);
});

test('conditions and annotations are patched, each by its own path', async () => {
  await using api = await startHarness();
  await withFinalizer(api);
  const condition = {
    type: 'lb.switchyard.dev/Ready',
    status: 'True',
    reason: 'Serving',
    message: 'it runs',
    lastTransitionTime: '2026-11-21T10:00:00Z',
    observedGeneration: 1,
  };
  const ingress = [{ ip: '172.18.255.1', ipMode: 'Proxy', ports: [{ port: 80, protocol: 'TCP' }] }];
  const status = { conditions: [condition], loadBalancer: { ingress } };
  await api.patch(`${services}/web/status`, 'merge', { status });
  const annotations = { 'lb.switchyard.dev/path': 'transparent' };
  await api.patch(`${services}/web`, 'merge', { metadata: { annotations } });
  const { body } = await api.get(`${services}/web`);
  expect(body.status).toEqual(status);
  expect(body.metadata).toMatchObject({ annotations, finalizers: [cleanup] });
});
