import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Exchange, initialEventsEnd, serveWatchList } from '../testing/scripted-api-server.ts';
import { millis, seconds } from '../base/time.ts';
import { added, deleted, gone, modified, ReflectorHarness, serviceObject } from './testing/reflector-harness.ts';

let h: ReflectorHarness;

beforeEach(async () => {
  h = await ReflectorHarness.create();
});

afterEach(() => h[Symbol.asyncDispose]());

describe('in order', () => {
  test('one WatchList lists everything and goes on as the watch', async () => {
    h.start();
    const watch = await h.sync('10', 'a', 'b');
    expect(h.told).toEqual(['replace shop/a shop/b']);
    watch.send(added('c', '11'), modified('a', '12'), deleted('b', '13'));
    await h.until(() => h.events.length === 4);
    expect(h.told.slice(1)).toEqual(['upsert shop/c', 'upsert shop/a', 'delete shop/b']);
    expect(h.server.requests).toHaveLength(1);
  });

  test('nothing is delivered before the end bookmark', async () => {
    h.start();
    const watch = (await h.next()).stream().send(added('a', '1'), added('b', '2'), deleted('b', '3'));
    watch.send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: '4' } } }, modified('a', '5'));
    await h.pause();
    expect(h.events).toEqual([]);
    watch.send(initialEventsEnd('5'));
    await h.until(() => h.events.length > 0);
    expect(h.events).toMatchObject([{ kind: 'replace', items: [{ key: 'shop/a', type: 'NodePort' }] }]);
  });

  test('a clean end resumes at once from the last version, bookmarks included', async () => {
    h.start({ shortWatch: millis(0) });
    const watch = await h.sync('10');
    watch.send(added('a', '11'), { type: 'BOOKMARK', object: { metadata: { resourceVersion: '40' } } }).end();
    const next = await h.next();
    expect(next.query.get('resourceVersion')).toBe('40');
    expect(next.query.has('sendInitialEvents')).toBe(false);
    expect(next.query.get('allowWatchBookmarks')).toBe('true');
    expect(h.clock.waits).toEqual([]);
    expect(h.log.transitions).toEqual([]);
  });

  test('an object that changes into one we ignore is deleted', async () => {
    h.start();
    const watch = await h.sync('10', 'a');
    watch.send({
      type: 'MODIFIED',
      object: { metadata: { namespace: 'shop', name: 'a' }, spec: { ports: 'nonsense' } },
    });
    await h.until(() => h.events.length === 2);
    expect(h.told[1]).toBe('delete shop/a');
  });

  test('lines are cut at newlines, not at chunk borders', async () => {
    h.start();
    const watch = await h.sync('10');
    const bytes = Buffer.from(
      [added('café', '11'), added('b', '12')].map((line) => `${JSON.stringify(line)}\n`).join(''),
    );
    for (const byte of bytes.subarray(0, 90)) watch.write(Buffer.of(byte));
    watch.write(bytes.subarray(90));
    await h.until(() => h.events.length === 3);
    expect(h.told.slice(1)).toEqual(['upsert shop/café', 'upsert shop/b']);
  });

  test('watches request an end after 300 to 600 seconds', async () => {
    h.start({ shortWatch: millis(0) }, 0);
    const watch = await h.sync('10');
    expect(h.server.requests[0]?.query.get('timeoutSeconds')).toBe('300');
    watch.end();
    await h.next();
    await h.stop();
    h.start({}, 0.999_999);
    expect((await h.next()).query.get('timeoutSeconds')).toBe('600');
  });

  test('connections are kept alive', async () => {
    h.start({ shortWatch: millis(0) });
    (await h.sync('10')).end();
    (await h.next()).stream().end();
    await h.next();
    expect(new Set(h.server.requests.map((request) => request.clientPort)).size).toBe(1);
  });
});

describe('list', () => {
  const list = (...names: readonly string[]): object => ({
    kind: 'ServiceList',
    metadata: { resourceVersion: '20' },
    items: names.map((name) => serviceObject(name, '1')),
  });

  test.each([400, 422])('is used after a %i on WatchList, and remembered', async (status) => {
    h.start({ shortWatch: millis(0) });
    (await h.next()).answer(status, { kind: 'Status', code: status, message: 'sendInitialEvents is forbidden' });
    const first = await h.next();
    expect(first.query.has('watch')).toBe(false);
    expect(first.query.get('resourceVersion')).toBe('0');
    first.answer(200, list('a', 'b', 'c'));
    const watch = await h.next();
    expect(watch.query.get('resourceVersion')).toBe('20');
    expect(h.told).toEqual(['replace shop/a shop/b shop/c']);
    watch.stream().send(gone).end();
    const again = await h.next();
    expect(again.query.has('watch')).toBe(false);
    expect(again.query.get('resourceVersion')).toBe('20'); // no other server may answer with an older state
    again.answer(429, 'too many requests');
    const afterOverload = await h.next();
    expect(afterOverload.query.get('resourceVersion')).toBe('20'); // says nothing of the version
    afterOverload.answer(504, { kind: 'Status', code: 504, message: 'Too large resource version' });
    expect((await h.next()).query.get('resourceVersion')).toBe('0'); // etcd was restored
  });

  test('explicit null items are an empty list', async () => {
    h.start();
    (await h.next()).answer(422, {});
    (await h.next()).answer(200, { metadata: { resourceVersion: '7' }, items: null });
    await h.until(() => h.events.length > 0);
    expect(h.told).toEqual(['replace']);
  });

  test('a server that ignores sendInitialEvents is listed', async () => {
    h.start({ initialInactivity: millis(30) });
    (await h.next()).stream().send(added('a', '1'));
    const asked = await h.next();
    expect(asked.query.has('watch')).toBe(false);
    asked.answer(200, list('a'));
    await h.until(() => h.events.length > 0);
    expect(h.told).toEqual(['replace shop/a']);
  });

  test('a truncated list is none', async () => {
    h.start();
    (await h.next()).answer(422, {});
    (await h.next()).answer(200, '{"metadata":{"resourceVersion":"7"},"items":[{');
    (await h.next()).answer(200, list('a'));
    await h.until(() => h.events.length > 0);
    expect(h.told).toEqual(['replace shop/a']);
  });
});

describe('410', () => {
  test.each([
    ['as an ERROR event', (exchange: Exchange) => exchange.stream().send(gone).end()],
    ['as a status', (exchange: Exchange) => exchange.answer(410, gone.object)],
  ])('%s leads to a new list that replaces', async (_, refuse) => {
    h.start({ shortWatch: millis(0) });
    (await h.sync('10', 'a')).end();
    refuse(await h.next());
    const relist = await h.next();
    expect(relist.query.get('sendInitialEvents')).toBe('true');
    expect(relist.query.get('resourceVersion')).toBe('10');
    expect(h.clock.waits).toEqual([500]); // of up to a second, since all nodes may have to list
    expect(h.told).toEqual(['replace shop/a']);
    serveWatchList(relist, '90', [serviceObject('b', '80')]);
    await h.until(() => h.events.length === 2);
    expect(h.told).toEqual(['replace shop/a', 'replace shop/b']);
    expect(h.log.transitions).toEqual([]);
  });

  test('after an outage is listed anew within a second, however long the waits had grown', async () => {
    h.start({ backOff: { first: millis(100), max: seconds(30) }, shortWatch: seconds(60) });
    (await h.sync('10', 'a')).end();
    for (let round = 0; round < 4; round++) (await h.next()).answer(500, 'no');
    const resumed = await h.next();
    const grown = [...h.clock.waits];
    resumed.answer(410, gone.object);
    (await h.sync('90', 'b')).end();
    expect(h.clock.waits).toEqual([...grown, 500]);
    (await h.next()).answer(410, gone.object);
    await h.next();
    expect(h.clock.waits[grown.length + 1]).toBeGreaterThan(1000); // a second one in a row waits longer
  });

  test('again and again, right after each list, is backed off', async () => {
    h.start({ shortWatch: seconds(60), backOff: { first: millis(100), max: millis(1000) } });
    for (let round = 0; round < 4; round++)
      serveWatchList(await h.next(), '10', [])
        .send(gone)
        .end();
    await h.next();
    expect(h.clock.waits).toEqual([75, 150, 300, 600]);
  });
});

describe('silence', () => {
  test('a silent watch is given up, resumed, and after two in a row listed anew', async () => {
    h.start({ inactivity: millis(40), shortWatch: millis(0) });
    const first = await h.sync('10', 'a');
    await first.closed;
    const second = await h.next();
    expect(second.query.get('resourceVersion')).toBe('10');
    await second.stream().closed;
    const third = await h.next();
    expect(third.query.get('resourceVersion')).toBe('10');
    await third.stream().closed;
    expect((await h.next()).query.get('sendInitialEvents')).toBe('true');
    expect(h.told).toEqual(['replace shop/a']);
    expect(h.log.transitions).toEqual([]);
  });

  test('silences are counted anew after a watch that ended in order', async () => {
    h.start({ inactivity: millis(40), shortWatch: millis(0) });
    await (
      await h.sync('10', 'a')
    ).closed;
    for (let round = 0; round < 3; round++) {
      await (await h.next()).stream().closed;
      (await h.next()).stream().end();
    }
    expect((await h.next()).query.get('resourceVersion')).toBe('10');
  });

  test('bookmarks keep a watch open', async () => {
    h.start({ inactivity: millis(500) });
    const watch = await h.sync('10');
    for (let version = 11; version < 17; version++) {
      await new Promise((resolve) => {
        setTimeout(resolve, 100);
      });
      watch.send({ type: 'BOOKMARK', object: { metadata: { resourceVersion: `${version}` } } });
    }
    expect(h.server.requests).toHaveLength(1);
  });
});
