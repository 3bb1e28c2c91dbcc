import { expect, test } from 'vitest';
import { services, startHarness, type Wire } from './harness.ts';

// The statements 1 to 6 of the recorded facts about kube-apiserver 1.36: lists.

test('fact 1: a list has one resourceVersion, its items have no kind, and an absent namespace is an empty list', async () => {
  await using api = await startHarness();
  const { metadata } = await api.service('web');
  const { body } = await api.get(services);
  expect(body).toMatchObject({ kind: 'ServiceList', apiVersion: 'v1' });
  expect(body.metadata).toEqual({ resourceVersion: metadata.resourceVersion });
  expect(Object.keys(body.items[0])).toEqual(['metadata', 'spec', 'status']);
  const absent = await api.get('/api/v1/namespaces/nowhere/services');
  expect(absent.status).toBe(200);
  expect(absent.body).toMatchObject({ items: [], metadata: { resourceVersion: metadata.resourceVersion } });
});

test('fact 2: pages show the state of the first page, and count the rest only without selectors', async () => {
  await using api = await startHarness();
  for (const name of ['a', 'b', 'c', 'd', 'e']) await api.service(name);
  const first = (await api.get(`${services}?limit=2`)).body;
  expect(first.items.map((item: Wire) => item.metadata.name)).toEqual(['a', 'b']);
  expect(first.metadata.remainingItemCount).toBe(3);
  await api.service('bb');
  await api.send('DELETE', `${services}/d`);
  const second = (await api.get(`${services}?limit=2&continue=${first.metadata.continue}`)).body;
  expect(second.items.map((item: Wire) => item.metadata.name)).toEqual(['c', 'd']);
  expect(second.metadata.resourceVersion).toBe(first.metadata.resourceVersion);
  const last = (await api.get(`${services}?limit=2&continue=${second.metadata.continue}`)).body;
  expect(last.items.map((item: Wire) => item.metadata.name)).toEqual(['e']);
  expect(last.metadata).toEqual({ resourceVersion: first.metadata.resourceVersion });
  const selected = (await api.get(`${services}?limit=2&labelSelector=!x`)).body;
  expect(selected.metadata.continue).toEqual(expect.any(String));
  expect(selected.metadata).not.toHaveProperty('remainingItemCount');
});

test('fact 3: with resourceVersion=0 the limit is ignored', async () => {
  await using api = await startHarness();
  for (const name of ['a', 'b', 'c']) await api.service(name);
  const { body } = await api.get(`${services}?limit=2&resourceVersion=0`);
  expect(body.items).toHaveLength(3);
  expect(body.metadata).not.toHaveProperty('continue');
});

test.each([
  ['continue together with a resourceVersion', 'limit=2&resourceVersion=5&continue=TOKEN', 400],
  ['a malformed continue', 'limit=2&continue=nonsense', 400],
  ['resourceVersionMatch without resourceVersion', 'resourceVersionMatch=Exact', 422],
  ['a malformed resourceVersion', 'resourceVersion=abc', 400],
  ['an unknown field selector', 'fieldSelector=spec.nothing%3D1', 400],
])('fact 4: %s is refused', async (_what, query, status) => {
  await using api = await startHarness();
  for (const name of ['a', 'b', 'c']) await api.service(name);
  const token = (await api.get(`${services}?limit=1`)).body.metadata.continue;
  const reply = await api.get(`${services}?${query.replace('TOKEN', token)}`);
  expect(reply.status).toBe(status);
  expect(reply.body.kind).toBe('Status');
});

test('fact 5: a list of a future version is held about 3 s, then 504; a watch from it is silent', async () => {
  await using api = await startHarness();
  const watch = await api.watch(`${services}?watch=true&resourceVersion=100000`);
  const start = performance.now();
  const reply = await api.get(`${services}?resourceVersion=99999`);
  expect(performance.now() - start).toBeGreaterThan(2_500);
  expect(reply.status).toBe(504);
  expect(reply.headers['retry-after']).toBe('1');
  expect(reply.body).toMatchObject({
    reason: 'Timeout',
    message: `Timeout: Too large resource version: 99999, current: ${api.server.store.resourceVersion}`,
    details: {
      causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
      retryAfterSeconds: 1,
    },
  });
  expect(watch.status).toBe(200);
  expect(watch.events).toEqual([]);
  watch.close();
});

test('fact 5: a list of a version that comes in time is answered', async () => {
  await using api = await startHarness();
  const next = api.server.store.resourceVersion + 1;
  const waiting = api.get(`${services}?resourceVersion=${next}`);
  await api.service('web');
  expect((await waiting).status).toBe(200);
});

test('fact 6: an expired continue token is 410 with a token that goes on at the newest version', async () => {
  await using api = await startHarness();
  for (const name of ['a', 'b', 'c']) await api.service(name);
  const first = (await api.get(`${services}?limit=1`)).body;
  await api.send('DELETE', `${services}/b`);
  api.server.store.compact();
  const expired = await api.get(`${services}?limit=1&continue=${first.metadata.continue}`);
  expect(expired.status).toBe(410);
  expect(expired.body.reason).toBe('Expired');
  const rest = await api.get(`${services}?limit=1&continue=${expired.body.metadata.continue}`);
  expect(rest.status).toBe(200);
  expect(rest.body.items.map((item: Wire) => item.metadata.name)).toEqual(['c']);
});

test('fact 6: an exact list at a compacted version is 410, at a remembered one it shows the past', async () => {
  await using api = await startHarness();
  const { metadata } = await api.service('web');
  await api.patch(`${services}/web`, 'merge', { metadata: { labels: { x: 'y' } } });
  const exact = `${services}?resourceVersion=${metadata.resourceVersion}&resourceVersionMatch=Exact`;
  const past = await api.get(exact);
  expect(past.body.metadata.resourceVersion).toBe(metadata.resourceVersion);
  expect(past.body.items[0].metadata).not.toHaveProperty('labels');
  api.server.store.compact();
  const gone = await api.get(exact);
  expect(gone.status).toBe(410);
  expect(gone.body.message).toBe('The resourceVersion for the provided list is too old.');
});
