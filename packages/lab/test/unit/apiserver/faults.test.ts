import { millis } from '@switchyard/core';
import { expect, test } from 'vitest';
import { services, startHarness } from './harness.ts';

test('a slow answer is whole, and as late as its bytes are', async () => {
  await using api = await startHarness();
  await api.service('web', { metadata: { annotations: { greeting: 'grüße' } } });
  const how = { kind: 'slow', latency: millis(100), bytes: 101, pause: millis(5) } as const;
  api.server.faults.inject(how, { times: 1 });
  const start = performance.now();
  const { text, body } = await api.get(services);
  expect(body.items[0].metadata.annotations.greeting).toBe('grüße');
  expect(performance.now() - start).toBeGreaterThanOrEqual(100 + Math.floor(Buffer.byteLength(text) / 101) * 5 - 1);
});

test('the events of a slow watch come late, whole and in order; its end comes last', async () => {
  await using api = await startHarness();
  api.server.faults.inject({ kind: 'slow', latency: millis(150), bytes: 40, pause: millis(1) }, { isWatch: true });
  const watch = await api.watch(`${services}?watch=true`);
  const start = performance.now();
  for (const name of ['one', 'two', 'three']) await api.service(name);
  expect(watch.events).toEqual([]);
  await watch.until(1);
  expect(performance.now() - start).toBeGreaterThan(140);
  api.server.faults.endWatches('clean');
  expect(await watch.ended).toBe('clean');
  expect(watch.events.map(({ object }) => object.metadata.name)).toEqual(['one', 'two', 'three']);
});

test('a fault for one token leaves the others alone', async () => {
  await using api = await startHarness();
  const fault = api.server.faults.inject({ kind: 'status', status: 401 }, { authorization: /^Bearer old$/ });
  const status = async (authorization?: string) =>
    (await api.get(services, authorization === undefined ? {} : { authorization })).status;
  expect(await status('Bearer old')).toBe(401);
  expect(await status('Bearer new')).toBe(200);
  expect(await status()).toBe(200);
  fault[Symbol.dispose]();
  expect(await status('Bearer old')).toBe(200);
});

test('a server that is away at one of its ports answers at the other', async () => {
  await using api = await startHarness();
  const { url } = await api.server.listen({ host: '127.0.0.1', port: 0 });
  const stopped = api.server.faults.stop(Number(new URL(url).port));
  await expect(fetch(`${url}${services}`)).rejects.toThrow('fetch failed');
  expect((await api.get(services)).status).toBe(200);
  stopped[Symbol.dispose]();
  expect((await fetch(`${url}${services}`)).status).toBe(200);
});
