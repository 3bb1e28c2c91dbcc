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

test.each(paths)('%s is served only where it is asked for', async (path) => {
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
