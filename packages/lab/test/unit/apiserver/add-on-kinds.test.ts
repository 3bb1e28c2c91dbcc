import { expect, test } from 'vitest';
import { startHarness } from './harness.ts';

const paths = [
  '/api/v1/namespaces/kube-system/configmaps',
  '/api/v1/namespaces/kube-system/serviceaccounts',
  '/apis/apps/v1/namespaces/kube-system/daemonsets',
  '/apis/apps/v1/namespaces/kube-system/controllerrevisions',
  '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
];

test.each(paths)('%s is served only with the option', async (path) => {
  await using usual = await startHarness();
  expect((await usual.get(path)).status).toBe(404);
  await using api = await startHarness({ hasAddOnKinds: true });
  const spec = {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
  };
  const more = path.endsWith('daemonsets') ? { spec } : path.endsWith('controllerrevisions') ? { revision: 1 } : {};
  const created = await api.send('POST', path, { metadata: { name: 'one' }, ...more });
  expect(created.status).toBe(201);
  expect((await api.get(`${path}/one`)).body).toEqual(created.body);
  const refused = await api.send('POST', `${path}?fieldValidation=Strict`, { metadata: { name: 'two' }, surprise: 1 });
  expect(refused.status).toBe(400);
});

const daemonSets = '/apis/apps/v1/namespaces/default/daemonsets';

test('DaemonSets can be had without the other kinds', async () => {
  await using api = await startHarness({ hasDaemonSets: true });
  expect((await api.get(daemonSets)).status).toBe(200);
  expect((await api.get('/api/v1/namespaces/default/configmaps')).status).toBe(404);
});

test.each([
  { what: 'neither limit', rollingUpdate: { maxUnavailable: 0 }, status: 422, because: 'Required value' },
  { what: 'both limits', rollingUpdate: { maxSurge: 1 }, status: 422, because: 'may not be set when maxUnavailable' },
  { what: 'surge', rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }, status: 201, because: undefined },
  { what: 'unavailable', rollingUpdate: { maxUnavailable: '10%' }, status: 201, because: undefined },
])('a DaemonSet with $what is answered with $status', async ({ rollingUpdate, status, because }) => {
  await using api = await startHarness({ hasDaemonSets: true });
  const spec = {
    selector: { matchLabels: { a: 'b' } },
    template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    updateStrategy: { type: 'RollingUpdate', rollingUpdate },
  };
  const reply = await api.send('POST', daemonSets, { metadata: { name: 'one' }, spec });
  expect(reply.status).toBe(status);
  if (because !== undefined) expect(reply.body.message).toContain(because);
});
