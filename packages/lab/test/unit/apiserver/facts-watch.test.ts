import { setTimeout as sleep } from 'node:timers/promises';
import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { fixture, services, startHarness, summary, type Wire } from './harness.ts';

// The statements 7 to 19 of the recorded facts about kube-apiserver 1.36: watches.

test('fact 7: headers come at once, one compact document and a newline per event', async () => {
  await using api = await startHarness();
  const watch = await api.watch(`${services}?watch=true`);
  expect(watch.status).toBe(200);
  expect(watch.headers).toMatchObject({ 'content-type': 'application/json', 'transfer-encoding': 'chunked' });
  expect(watch.events).toEqual([]);
  await api.service('web');
  await watch.until(1);
  expect(watch.chunks.join('')).toBe(`${JSON.stringify(watch.events[0])}\n`);
  watch.close();
});

test('fact 7: the recorded bytes of a stream have the same shape', async () => {
  await using api = await startHarness();
  await api.service('p2');
  const watch = await api.watch(`${services}?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Dp2`);
  await api.patch(`${services}/p2`, 'merge', { metadata: { annotations: { raw: '1' } } });
  await watch.until(2);
  watch.close();
  const body: string = fixture('raw-watch.json').watch.responseBytes.split('\r\n\r\n').slice(1).join('\r\n\r\n');
  const recorded = body
    .split('\r\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line));
  expect(summary(watch.events)).toEqual(summary(recorded));
  recorded.forEach((event: Wire, index: number) => {
    const mine = watch.events[index];
    expect(Object.keys(mine)).toEqual(Object.keys(event));
    expect(Object.keys(mine.object)).toEqual(Object.keys(event.object));
    expect(Object.keys(mine.object.metadata)).toEqual(
      Object.keys(event.object.metadata).filter((key) => key !== 'managedFields'),
    );
  });
});

test('fact 8: a watch from R shows only what is newer; without R it starts with all that exists', async () => {
  await using api = await startHarness();
  const web = await api.service('web');
  await api.service('late');
  const from = await api.watch(`${services}?watch=true&resourceVersion=${web.metadata.resourceVersion}`);
  const all = await api.watch(`${services}?watch=true`);
  const zero = await api.watch(`${services}?watch=1&resourceVersion=0&allowWatchBookmarks=true`);
  await Promise.all([from.until(1), all.until(2), zero.until(2)]);
  await sleep(20);
  expect(summary(from.events)).toEqual(['ADDED late']);
  expect(summary(all.events).toSorted()).toEqual(['ADDED late', 'ADDED web']);
  expect(summary(zero.events).toSorted()).toEqual(['ADDED late', 'ADDED web']);
  for (const watch of [from, all, zero]) watch.close();
});

test('fact 9: DELETED carries the last state with the version of the deletion', async () => {
  await using api = await startHarness();
  const web = await api.service('web', { metadata: { labels: { last: 'state' } } });
  const watch = await api.watch(`${services}?watch=true&resourceVersion=${web.metadata.resourceVersion}`);
  await api.send('DELETE', `${services}/web`);
  await watch.until(1);
  watch.close();
  const { type, object } = watch.events[0];
  expect(type).toBe('DELETED');
  expect(object.metadata.labels).toEqual({ last: 'state' });
  expect(Number(object.metadata.resourceVersion)).toBe(Number(web.metadata.resourceVersion) + 1);
});

test.each([
  [
    'a label selector',
    'labelSelector=app%3Dx',
    { metadata: { labels: { app: 'y' } } },
    { metadata: { labels: { app: 'x' } } },
  ],
  [
    'a field selector',
    'fieldSelector=spec.type%3DClusterIP',
    { spec: { type: 'NodePort' } },
    { spec: { type: 'ClusterIP' } },
  ],
])('fact 10: leaving %s is DELETED with the old content, entering is ADDED', async (_what, query, leave, enter) => {
  await using api = await startHarness();
  const web = await api.service('web', { metadata: { labels: { app: 'x' } } });
  const watch = await api.watch(`${services}?watch=true&resourceVersion=${web.metadata.resourceVersion}&${query}`);
  const left = (await api.patch(`${services}/web`, 'merge', leave)).body;
  await api.patch(`${services}/web`, 'merge', { metadata: { annotations: { outside: '1' } } });
  await api.patch(`${services}/web`, 'merge', enter);
  await watch.until(2);
  watch.close();
  expect(summary(watch.events)).toEqual(['DELETED web', 'ADDED web']);
  const gone = watch.events[0].object;
  expect(gone.metadata.resourceVersion).toBe(left.metadata.resourceVersion);
  expect({ ...gone, metadata: { ...gone.metadata, resourceVersion: '' } }).toEqual({
    ...web,
    metadata: { ...web.metadata, resourceVersion: '' },
  });
});

test('fact 11: a write that changes nothing keeps the version and gives no event', async () => {
  await using api = await startHarness();
  const web = await api.service('web');
  const watch = await api.watch(`${services}?watch=true&resourceVersion=${web.metadata.resourceVersion}`);
  const same = await api.patch(`${services}/web`, 'merge', { spec: { type: 'ClusterIP' } });
  const put = await api.send('PUT', `${services}/web`, web);
  expect([same.body.metadata.resourceVersion, put.body.metadata.resourceVersion]).toEqual([
    web.metadata.resourceVersion,
    web.metadata.resourceVersion,
  ]);
  await api.service('other');
  await watch.until(1);
  watch.close();
  expect(summary(watch.events)).toEqual(['ADDED other']);
});

test('fact 12: with a finalizer a DELETE is MODIFIED; removing the last finalizer is DELETED', async () => {
  await using api = await startHarness();
  const web = await api.service('web', { metadata: { finalizers: ['example.com/hold'] } });
  const watch = await api.watch(`${services}?watch=true&resourceVersion=${web.metadata.resourceVersion}`);
  const reply = await api.send('DELETE', `${services}/web`);
  expect(reply.body.metadata.deletionTimestamp).toEqual(expect.any(String));
  expect((await api.get(`${services}/web`)).status).toBe(200);
  await api.patch(`${services}/web`, 'merge', { metadata: { finalizers: null } });
  await watch.until(2);
  watch.close();
  expect(summary(watch.events)).toEqual(['MODIFIED web', 'DELETED web']);
  expect((await api.get(`${services}/web`)).status).toBe(404);
});

test('fact 13: bookmarks come at the interval when another kind changed, never without news', async () => {
  await using api = await startHarness({ bookmarkInterval: millis(60) });
  const start = String(api.server.store.resourceVersion);
  const cidrs = '/apis/networking.k8s.io/v1/servicecidrs';
  const watch = await api.watch(`${cidrs}?watch=true&allowWatchBookmarks=true&resourceVersion=${start}`);
  const plain = await api.watch(`${cidrs}?watch=true&resourceVersion=${start}`);
  await sleep(150);
  expect(watch.events).toEqual([]);
  const web = await api.service('web');
  await watch.until(1);
  await sleep(150);
  expect(watch.events).toEqual([
    {
      type: 'BOOKMARK',
      object: {
        kind: 'ServiceCIDR',
        apiVersion: 'networking.k8s.io/v1',
        metadata: { resourceVersion: web.metadata.resourceVersion },
        spec: {},
        status: {},
      },
    },
  ]);
  expect(plain.events).toEqual([]);
  watch.close();
  plain.close();
});

test('fact 13: a bookmark comes 2 s before timeoutSeconds runs out', async () => {
  await using api = await startHarness();
  const { resourceVersion } = api.server.store;
  const query = `watch=true&allowWatchBookmarks=true&resourceVersion=${resourceVersion}&timeoutSeconds=3`;
  const watch = await api.watch(`/api/v1/nodes?${query}`);
  await api.service('web');
  const start = performance.now();
  await watch.until(1);
  expect(performance.now() - start).toBeGreaterThan(700);
  expect(watch.events[0].type).toBe('BOOKMARK');
  watch.close();
});

test('fact 14: WatchList sends all that exists, then the initial-events-end bookmark, then a bookmark soon after a change', async () => {
  await using api = await startHarness();
  await api.service('a');
  await api.service('b');
  const end = api.server.store.resourceVersion;
  const query = 'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan';
  const watch = await api.watch(`${services}?${query}&allowWatchBookmarks=true`);
  const empty = await api.watch(`${services}?${query}&allowWatchBookmarks=true&resourceVersion=0&labelSelector=nope`);
  const without = await api.watch(`${services}?${query}`);
  await Promise.all([watch.until(3), empty.until(1), without.until(2)]);
  expect(summary(watch.events)).toEqual(['ADDED a', 'ADDED b', 'BOOKMARK']);
  expect(watch.events[2].object).toEqual({
    kind: 'Service',
    apiVersion: 'v1',
    metadata: { resourceVersion: String(end), annotations: { 'k8s.io/initial-events-end': 'true' } },
    spec: {},
    status: { loadBalancer: {} },
  });
  expect(summary(empty.events)).toEqual(['BOOKMARK']);
  const changed = (await api.patch(`${services}/a`, 'merge', { metadata: { labels: { x: 'y' } } })).body;
  await watch.until(5);
  expect(summary(watch.events.slice(3))).toEqual(['MODIFIED a', 'BOOKMARK']);
  expect(watch.events[4].object.metadata).toEqual({ resourceVersion: changed.metadata.resourceVersion });
  expect(summary(without.events)).toEqual(['ADDED a', 'ADDED b', 'MODIFIED a']);
  for (const each of [watch, empty, without]) each.close();
});

test('fact 15: timeoutSeconds ends the body cleanly; the client goes on from the last version', async () => {
  await using api = await startHarness();
  const { metadata } = await api.service('a');
  const watch = await api.watch(`${services}?watch=true&resourceVersion=${metadata.resourceVersion}&timeoutSeconds=1`);
  const b = await api.service('b');
  expect(await watch.ended).toBe('clean');
  await api.service('c');
  const next = await api.watch(`${services}?watch=true&resourceVersion=${b.metadata.resourceVersion}`);
  await next.until(1);
  expect(summary([...watch.events, ...next.events])).toEqual(['ADDED b', 'ADDED c']);
  next.close();
});

test('fact 16: a compacted version is 200 with one ERROR event of code 410, then a clean end', async () => {
  await using api = await startHarness();
  await api.service('web');
  api.server.store.compact();
  const watch = await api.watch(`${services}?watch=true&resourceVersion=2`);
  expect(await watch.ended).toBe('clean');
  expect(watch.status).toBe(200);
  expect(watch.events).toEqual([
    {
      type: 'ERROR',
      object: {
        kind: 'Status',
        apiVersion: 'v1',
        metadata: {},
        status: 'Failure',
        message: `too old resource version: 2 (${api.server.store.oldestVersion})`,
        reason: 'Expired',
        code: 410,
      },
    },
  ]);
});

test('fact 16: the history is bounded: the older half goes, the newer stays usable', async () => {
  await using api = await startHarness({ historyLimit: 20 });
  const first = await api.service('web');
  let last = first;
  for (let n = 0; n < 40; n++) {
    last = (await api.patch(`${services}/web`, 'merge', { metadata: { labels: { n: String(n) } } })).body;
  }
  const gone = await api.watch(`${services}?watch=true&resourceVersion=${first.metadata.resourceVersion}`);
  const recent = await api.watch(`${services}?watch=true&resourceVersion=${Number(last.metadata.resourceVersion) - 3}`);
  await Promise.all([gone.until(1), recent.until(3)]);
  expect(gone.events[0].object.code).toBe(410);
  expect(summary(recent.events)).toEqual(['MODIFIED web', 'MODIFIED web', 'MODIFIED web']);
  recent.close();
});

test('fact 17: a Table watch defines its columns once', async () => {
  await using api = await startHarness();
  await api.service('a');
  await api.service('b');
  const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json' };
  const rows = await api.watch(`${services}?watch=true&resourceVersion=0`, table);
  await rows.until(2);
  const [first, second] = rows.events.map((event) => event.object);
  expect(first.columnDefinitions).toHaveLength(7);
  expect(second.columnDefinitions).toBeNull();
  expect(second.rows[0].cells.slice(0, 2)).toEqual(['b', 'ClusterIP']);
  expect(second.rows[0].object).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'b' } });
  rows.close();
});

test('fact 18: large lists are gzipped when the client takes it, small ones and watches never', async () => {
  await using api = await startHarness();
  const filler = 'x'.repeat(2_000);
  for (let n = 0; n < 80; n++) await api.service(`s${n}`, { metadata: { annotations: { filler } } });
  const gzip = { 'accept-encoding': 'gzip' };
  const large = await api.get(services, gzip);
  expect(large.headers).toMatchObject({ 'content-encoding': 'gzip', vary: 'Accept-Encoding' });
  expect((await api.get(services)).headers).not.toHaveProperty('content-encoding');
  expect((await api.get(`${services}?limit=1`, gzip)).headers).not.toHaveProperty('content-encoding');
  const watch = await api.watch(`${services}?watch=true&resourceVersion=0`, gzip);
  await watch.until(80);
  expect(watch.headers).not.toHaveProperty('content-encoding');
  watch.close();
});
