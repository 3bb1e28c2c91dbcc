import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { millis } from '../base/time.ts';
import { initialEventsEnd } from '../testing/scripted-api-server.ts';
import type { ApiBody, ApiClient, ApiRequest, RawObject } from './api-client.ts';
import { streamList } from './stream-list.ts';
import { added, ReflectorHarness, serviceObject } from './testing/reflector-harness.ts';

const { signal } = new AbortController();

/** Lists a body that arrives in chunks of a size. */
async function read(json: string, chunkSize: number): Promise<{ items: readonly RawObject[]; version: string }> {
  const bytes = Buffer.from(json);
  const requests: ApiRequest[] = [];
  const body: ApiBody = {
    request: 'GET /services',
    chunks: async function* () {
      for (let at = 0; at < bytes.length; at += chunkSize) yield bytes.subarray(at, at + chunkSize);
    },
    setInactivity: () => undefined,
  };
  const client: Pick<ApiClient, 'get'> = {
    get: async <T>(request: ApiRequest, use: (one: ApiBody) => Promise<T>) => {
      requests.push(request);
      return use(body);
    },
  };
  const items: RawObject[] = [];
  const list = {
    path: '/services',
    selectors: {},
    notOlderThan: undefined,
    onItem: (item: RawObject) => items.push(item),
  };
  const version = await streamList(client, list, signal);
  expect(requests.map(({ takesGzip }) => takesGzip)).toEqual([true]);
  return { items, version };
}

describe('a list that arrives in pieces', () => {
  const items = [
    { metadata: { name: 'a' }, spec: { note: '},{"metadata":{ "items":[' } },
    { metadata: { name: 'within' }, templates: [{ x: 1 }, { metadata: { name: 'no item' } }, { metadata: {} }] },
    { metadata: { name: 'ü' } },
  ];
  const list = { kind: 'ServiceList', apiVersion: 'v1', metadata: { resourceVersion: '12' }, items };
  const otherOrder = { items, kind: 'ServiceList', metadata: { resourceVersion: '12' } };

  test.each([
    ['as Go writes it', JSON.stringify(list)],
    ['with its version at the end', JSON.stringify(otherOrder)],
    ['with blanks', JSON.stringify(list, undefined, 2)],
  ])('is read item by item: %s', async (_, json) => {
    for (let size = 1; size < 60; size++) expect(await read(json, size)).toEqual({ items, version: '12' });
    expect(await read(json, json.length)).toEqual({ items, version: '12' });
  });

  test.each([
    ['{"metadata":{"resourceVersion":"1"},"items":[]}', []],
    ['{"metadata":{"resourceVersion":"1"}}', []],
    ['{"metadata":{"resourceVersion":"1"},"items":null}', []],
  ])('%s is empty', async (json, expected) => {
    expect(await read(json, 7)).toEqual({ items: expected, version: '1' });
  });

  test.each([
    ['', 'the list is not JSON'],
    ['{"metadata":{"resourceVersion":"1"},"items":[{"metadata":{}},{"metadata":{', 'the list is not JSON'],
    ['{"metadata":{},"items":[]}', 'it has no metadata.resourceVersion'],
    ['[]', 'it has no metadata.resourceVersion'],
    ['{"metadata":null}', 'it has no metadata.resourceVersion'],
  ])('%s is refused', async (json, why) => {
    await expect(read(json, 9)).rejects.toThrow(why);
  });
});

describe('a compressed answer', () => {
  let h: ReflectorHarness;

  beforeEach(async () => {
    h = await ReflectorHarness.create();
  });

  afterEach(() => h[Symbol.asyncDispose]());

  const gzip = { 'content-encoding': 'gzip' };
  const member = (...events: readonly object[]): Buffer =>
    gzipSync(events.map((event) => `${JSON.stringify(event)}\n`).join(''));

  // kubernetes/kubernetes#139925: the server ends the gzip member each time it has nothing more to send.
  test('of a watch that lists first has one gzip member per flush, and each event comes at once', async () => {
    h.start();
    const watch = (await h.next()).stream(gzip);
    watch.write(member(added('a', '1'), added('b', '2'), initialEventsEnd('5')));
    await h.until(() => h.events.length === 1);
    for (const [index, name] of ['c', 'd', 'e'].entries()) {
      watch.write(member(added(name, `${index + 6}`)));
      await h.until(() => h.events.length === index + 2);
    }
    const last = member(added('f', '9'));
    watch.write(last.subarray(0, 11));
    await h.pause();
    watch.write(last.subarray(11));
    await h.until(() => h.events.length === 5);
    expect(h.told).toEqual(['replace shop/a shop/b', ...['c', 'd', 'e', 'f'].map((name) => `upsert shop/${name}`)]);
    watch.end();
    expect((await h.next()).query.get('resourceVersion')).toBe('9');
    expect(h.log.transitions).toEqual([]);
  });

  test('of a list is read', async () => {
    h.start();
    (await h.next()).answer(422, {});
    const body = { metadata: { resourceVersion: '7' }, items: ['a', 'b'].map((name) => serviceObject(name, '1')) };
    (await h.next())
      .stream(gzip)
      .write(gzipSync(JSON.stringify(body)))
      .end();
    await h.until(() => h.events.length === 1);
    expect(h.told).toEqual(['replace shop/a shop/b']);
  });

  test('that ends within a member, or is no gzip, is tried again', async () => {
    h.start();
    const bytes = member(added('a', '1'), initialEventsEnd('5'));
    (await h.next()).stream(gzip).write(bytes.subarray(0, -9)).end();
    (await h.next()).stream(gzip).write('no gzip at all').end();
    (await h.next()).stream({ 'content-encoding': 'br' }).write('?').end();
    expect(h.events.length).toBeLessThanOrEqual(1);
    (await h.next()).stream(gzip).write(bytes);
    await h.until(() => h.told.length > 0);
    expect(h.told[0]).toBe('replace shop/a');
  });

  test('that is cut off is resumed', async () => {
    h.start({ shortWatch: millis(0) });
    const watch = (await h.next()).stream(gzip).write(member(added('a', '1'), initialEventsEnd('5')));
    await h.until(() => h.events.length === 1);
    watch.socket.destroy();
    expect((await h.next()).query.get('resourceVersion')).toBe('5');
    expect(h.log.transitions).toEqual([]);
  });
});
