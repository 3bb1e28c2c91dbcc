import { type IncomingMessage, request } from 'node:http';
import { expect, test } from 'vitest';
import { ClusterState, nodeName } from '@switchyard/core';
import { services, sourceAt, startHarness } from './harness.ts';

const watchList = `${services}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true`;

test('a watch that lists first is compressed for those who take it, others are not', async () => {
  await using api = await startHarness({ compressesWatchLists: true });
  await using plain = await startHarness();
  const encoding = async (from: typeof api, target: string, headers = {}): Promise<string | undefined> => {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
    const watch = request(new URL(target, from.url), { headers }, resolve).on('error', reject).end();
    const { headers: answered } = await promise;
    watch.destroy();
    return answered['content-encoding'];
  };
  const gzip = { 'accept-encoding': 'gzip' };
  expect(await encoding(api, watchList, gzip)).toBe('gzip');
  expect(await encoding(api, watchList)).toBeUndefined();
  expect(await encoding(api, `${services}?watch=true&resourceVersion=1`, gzip)).toBeUndefined();
  expect(await encoding(plain, watchList, gzip)).toBeUndefined();
});

test('our source reads it: the objects, then each change as it comes', async () => {
  await using api = await startHarness({ compressesWatchLists: true });
  const names = Array.from({ length: 300 }, (_, index) => `service-${index}`);
  for (const name of names) await api.service(name);
  const source = sourceAt(api.url, { kind: 'all' });
  const state = new ClusterState({ nodeName: nodeName('node1') });
  const sizes: number[] = [];
  for await (const batch of source.batches(new AbortController().signal)) {
    state.apply(batch);
    if (!state.isInSync) continue;
    sizes.push(state.services.size);
    if (sizes.length === 4) break;
    await api.service(`later-${sizes.length}`);
  }
  expect(sizes).toEqual([300, 301, 302, 303]);
});
