import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { millis } from '../base/time.ts';
import { initialEventsEnd } from '../testing/scripted-api-server.ts';
import { resourceQueries } from './resources.ts';
import { nodeName } from '../model/records/keys.ts';
import { recorded, recording, replay, type Recorded } from './testing/recorded.ts';
import { ReflectorHarness } from './testing/reflector-harness.ts';

// Duties of a client by each statement of the recording's README: lists and requests.

let h: ReflectorHarness;

beforeEach(async () => {
  h = await ReflectorHarness.create();
});

afterEach(() => h[Symbol.asyncDispose]());

interface RecordedList {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly { readonly metadata: { readonly namespace: string; readonly name: string } }[];
}

const listBody = (record: Recorded): RecordedList => record.response.body as RecordedList;
const keys = (record: Recorded): readonly string[] =>
  listBody(record).items.map(({ metadata }) => `${metadata.namespace}/${metadata.name}`);

/** Makes the reflector list instead. */
async function refuseWatchList(): Promise<void> {
  h.start();
  replay(await h.next(), recorded('watch-semantics.json', 'sendInitialEvents without resourceVersionMatch'));
}

test('fixture fact 1: items without kind and apiVersion become records, and the watch starts at the version of the list', async () => {
  const list = recorded('reflector-list.json', "kube-proxy's selectors");
  expect(Object.keys(listBody(list).items[0] ?? {})).not.toContain('kind');
  await refuseWatchList();
  replay(await h.next(), list);
  const watch = await h.next();
  expect(watch.query.get('resourceVersion')).toBe(listBody(list).metadata.resourceVersion);
  expect(h.told).toEqual([['replace', ...keys(list)].join(' ')]);
});

test('fixture fact 1: an empty list has a version to watch from', async () => {
  const list = recorded('reflector-list.json', 'empty result');
  await refuseWatchList();
  replay(await h.next(), list);
  expect((await h.next()).query.get('resourceVersion')).toBe(listBody(list).metadata.resourceVersion);
  expect(h.told).toEqual(['replace']);
});

test('fixture facts 3 and 4: a list names a version and no limit, so the cache answers, whole', async () => {
  await refuseWatchList();
  const { query } = await h.next();
  expect([...query.keys()]).toEqual(['fieldSelector', 'labelSelector', 'resourceVersion', 'resourceVersionMatch']);
  expect([query.get('resourceVersion'), query.get('resourceVersionMatch')]).toEqual(['0', 'NotOlderThan']);
});

test('fixture fact 5: 504 for a version in the future is waited out as Retry-After says', async () => {
  h.start();
  replay(await h.next(), recorded('reflector-list.json', 'revision in the future'));
  await h.next();
  expect(h.clock.waits).toEqual([1500]);
  expect(h.log.lines.find(({ level }) => level === 'warn')?.fields['error']).toContain(
    'answered 504: Timeout: Too large resource version',
  );
});

test('fixture fact 5: a watch from a version in the future stays silent; it is given up for a new list', async () => {
  h.start({ inactivity: millis(30), shortWatch: millis(0) });
  (await h.next()).stream().send(initialEventsEnd('100811')).end();
  const silent = recorded('watch-semantics.json', 'watch from a revision in the future');
  for (let round = 0; round < 2; round++) {
    const watch = await h.next();
    expect(watch.query.get('resourceVersion')).toBe('100811');
    await replay(watch, silent).closed;
  }
  expect((await h.next()).query.get('sendInitialEvents')).toBe('true');
});

describe('fixture facts 21 and 22: what kube-proxy asks', () => {
  const asked =
    recording<Record<'default' | 'json' | 'listWatch', { exchanges: readonly Recorded[] }>>('kube-proxy.json');

  /** Path and parameters. The time limit is random, and `timeout` repeats it for the Go client's own use. */
  const essence = (target: string): string => {
    const url = new URL(target, 'http://server');
    for (const name of ['timeout', 'timeoutSeconds']) url.searchParams.delete(name);
    url.searchParams.sort();
    return `${url.pathname}?${url.searchParams}`;
  };

  test.each(asked.default.exchanges.map((exchange) => [essence(exchange.request.target), exchange] as const))(
    'WatchList: we ask the same: %s',
    async (expected, { request }) => {
      const path = new URL(request.target, 'http://x').pathname;
      const query = Object.values(resourceQueries({ kind: 'one', name: nodeName('node1') })).find(
        (one) => one.path === path,
      );
      await using own = await ReflectorHarness.create(query?.kind);
      own.start();
      const ours = await own.next();
      expect(essence(ours.target)).toBe(expected);
      expect(Number(ours.query.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300);
      expect(Number(ours.query.get('timeoutSeconds'))).toBeLessThanOrEqual(600);
    },
  );

  const classic = asked.listWatch.exchanges.map(({ request }) => request.target);

  test.each(classic.filter((target) => target.includes('watch=true')).map((target) => [essence(target)] as const))(
    'watch after a list: we ask the same: %s',
    async (expected) => {
      const { pathname, searchParams } = new URL(expected, 'http://x');
      const query = Object.values(resourceQueries({ kind: 'one', name: nodeName('node1') })).find(
        (one) => one.path === pathname,
      );
      await using own = await ReflectorHarness.create(query?.kind);
      own.start();
      (await own.next()).answer(422, {});
      (await own.next()).answer(200, { metadata: { resourceVersion: searchParams.get('resourceVersion') }, items: [] });
      expect(essence((await own.next()).target)).toBe(expected);
    },
  );

  test.each(classic.filter((target) => target.includes('limit=')).map((target) => [essence(target)] as const))(
    'list: we ask the same but for the limit, which servers ignore beside resourceVersion=0: %s',
    async (expected) => {
      const query = Object.values(resourceQueries({ kind: 'one', name: nodeName('node1') })).find((one) =>
        expected.startsWith(`${one.path}?`),
      );
      await using own = await ReflectorHarness.create(query?.kind);
      own.start();
      (await own.next()).answer(422, {});
      const asked = `${expected.replace('limit=500&', '')}&resourceVersionMatch=NotOlderThan`;
      expect(essence((await own.next()).target)).toBe(asked);
    },
  );

  test.each(
    asked.json.exchanges.map((exchange) => [new URL(exchange.request.target, 'http://x').pathname, exchange] as const),
  )('the answer kube-proxy got from %s brings us in sync', async (path, exchange) => {
    const query = Object.values(resourceQueries({ kind: 'one', name: nodeName('node1') })).find(
      (one) => one.path === path,
    );
    await using own = await ReflectorHarness.create(query?.kind);
    own.start();
    replay(await own.next(), exchange);
    await own.until(() => own.events.length > 0);
    expect(own.events[0]).toMatchObject({ kind: 'replace', resource: query?.kind });
    expect(own.told[0]?.split(' ').length).toBeGreaterThan(1);
  });
});
