import type { ServicePortKey } from '@switchyard/core';
import type { ServiceCounters } from '@switchyard/core/engine';
import { socketTraits, tableOf } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { CauseCode } from './causes/causes.ts';
import { type Loss } from './causes/explain-drop.ts';
import { RefusalCounts } from './refusal-counts.ts';
import { serviceView, shop } from './testing/shop.ts';

const { signal } = new AbortController();
const empty = 'shop/empty:/TCP';
const remote = 'shop/remote:/TCP';

type Drops = Partial<ServiceCounters['drops']>;
type Counters = Readonly<Record<string, Drops>>;

/** A reading of one map per IP family. */
function reading(...families: readonly Counters[]) {
  return families.map(
    (counters) =>
      new Map(
        Object.entries(counters).map(([key, drops]) => [
          key as ServicePortKey,
          { connections: 1000, drops: { noEndpoints: 0, noLocalEndpoint: 0, sourceRange: 0, ...drops } },
        ]),
      ),
  );
}

/** Counts whose counters give these readings, one after the other. The first one is read. */
async function countsOf(...readings: readonly (readonly Counters[])[]): Promise<RefusalCounts> {
  const left = [...readings];
  const counts = new RefusalCounts(async () => reading(...(left.shift() ?? [])));
  await counts.read(signal);
  return counts;
}

const entriesOf = async (counts: RefusalCounts) => Object.fromEntries(await counts.read(signal));

/** A loss that packets show. */
function shown(cause: CauseCode, service: string, count: number): Loss {
  return {
    cause,
    why: 'because',
    advice: 'do',
    certainty: 'sure',
    service: service as ServicePortKey,
    services: [service as ServicePortKey],
    frontend: '10.96.0.11:80/TCP',
    client: undefined,
    direction: 'request',
    where: { netns: 'node', hook: undefined },
    reason: 'NETFILTER_DROP',
    count,
  };
}

describe('new refusals', () => {
  test('are none in the first reading', async () => {
    const counts = new RefusalCounts(async () => reading({ [empty]: { noEndpoints: 5 } }));
    expect(await entriesOf(counts)).toEqual({});
  });

  test.each([
    ['noEndpoints', 'noEndpoints'],
    ['noLocalEndpoint', 'noLocalEndpoint'],
    ['sourceRange', 'sourceNotAllowed'],
  ] as const)('of the counter %s have the cause %s', async (counter, cause) => {
    const counts = await countsOf([{ [empty]: { [counter]: 5 } }], [{ [empty]: { [counter]: 8 } }]);
    expect(await entriesOf(counts)).toEqual({ [`${cause} ${empty}`]: 3 });
  });

  test('are kept apart by Service and cause', async () => {
    const counts = await countsOf(
      [{}],
      [{ [empty]: { noEndpoints: 1, sourceRange: 2 }, [remote]: { noEndpoints: 4 } }],
    );
    expect(await entriesOf(counts)).toEqual({
      [`noEndpoints ${empty}`]: 1,
      [`sourceNotAllowed ${empty}`]: 2,
      [`noEndpoints ${remote}`]: 4,
    });
  });

  test('are summed over both IP families', async () => {
    const counts = await countsOf(
      [{ [empty]: { noEndpoints: 10 } }, { [empty]: { noEndpoints: 20 } }],
      [{ [empty]: { noEndpoints: 11 } }, { [empty]: { noEndpoints: 22 } }],
    );
    expect(await entriesOf(counts)).toEqual({ [`noEndpoints ${empty}`]: 3 });
  });

  test('are counted from each reading to the next', async () => {
    const [five, seven] = [{ [empty]: { noEndpoints: 5 } }, { [empty]: { noEndpoints: 7 } }];
    const counts = await countsOf([five], [seven], [seven], [{}], [five]);
    expect(await entriesOf(counts)).toEqual({ [`noEndpoints ${empty}`]: 2 });
    expect(await entriesOf(counts)).toEqual({});
    expect(await entriesOf(counts)).toEqual({});
    expect(await entriesOf(counts)).toEqual({ [`noEndpoints ${empty}`]: 5 });
  });

  test('are not known where the counters cannot be read', async () => {
    const failure = new Error('no counters');
    const counts = new RefusalCounts(async () => Promise.reject(failure));
    await expect(counts.read(signal)).rejects.toBe(failure);
  });
});

describe('refusals that packets have not shown', () => {
  const place = `noEndpoints ${empty}`;
  const missing = (counts: RefusalCounts, fresh: number, losses: readonly Loss[]) =>
    counts.missing(new Map(fresh === 0 ? [] : [[place, fresh]]), losses, serviceView()).map(({ count }) => count);

  test.each<readonly [string, readonly Loss[], readonly number[]]>([
    ['all', [], [5]],
    ['all but those shown', [shown('noEndpoints', empty, 2), shown('noEndpoints', empty, 1)], [2]],
    ['none', [shown('noEndpoints', empty, 5)], []],
    ['none of fewer than were shown', [shown('noEndpoints', empty, 6)], []],
    ['all, as another cause was shown', [shown('noLocalEndpoint', empty, 5)], [5]],
    ['all, as another Service was shown', [shown('noEndpoints', remote, 5)], [5]],
  ])('%s', async (_, losses, expected) => {
    expect(missing(await countsOf(), 5, losses)).toEqual(expected);
  });

  test('are less than shown: the counters have packets only at the next reading', async () => {
    const counts = await countsOf();
    expect(missing(counts, 0, [shown('noEndpoints', empty, 3)])).toEqual([]);
    expect(missing(counts, 2, [])).toEqual([]);
    expect(missing(counts, 5, [])).toEqual([4]);
    expect(missing(counts, 5, [])).toEqual([5]);
  });
});

describe('a loss of a refusal', () => {
  const lossOf = async (cause: CauseCode, key: string, view = serviceView()) => {
    const [loss] = (await countsOf()).missing(new Map([[`${cause} ${key}`, 3]]), [], view);
    return loss;
  };

  test('has every field', async () => {
    expect(await lossOf('noEndpoints', empty)).toEqual({
      cause: 'noEndpoints',
      why: 'no endpoint of shop/empty:/TCP is usable anywhere',
      advice: 'make a pod of the Service ready: see its EndpointSlices and the readiness probes of its pods',
      certainty: 'sure',
      service: empty,
      services: [empty],
      frontend: '10.96.0.11:80/TCP',
      client: undefined,
      direction: 'request',
      where: { netns: 'node', hook: undefined },
      reason: 'counter of the Service',
      count: 3,
    });
  });

  test.each([
    ['noLocalEndpoint', remote, '10.96.0.14:80/TCP', /none on this node; 10.244.2.7:8080 is on n2$/],
    [
      'sourceNotAllowed',
      'shop/guarded:/TCP',
      '198.51.100.8:80/TCP',
      /in none of the allowed source ranges 10.0.0.0\/8$/,
    ],
    ['noEndpoints', remote, remote, /^the Service refused it \(noEndpoints\); it no longer does$/],
    ['noEndpoints', 'shop/cart:/TCP', 'shop/cart:/TCP', /it no longer does$/],
    ['noEndpoints', 'shop/gone:/TCP', 'shop/gone:/TCP', /it no longer does$/],
  ] as const)('%s of %s names the frontend %s', async (cause, key, frontend, why) => {
    expect(await lossOf(cause, key)).toMatchObject({ cause, frontend, why: expect.stringMatching(why) });
  });

  test('names a NodePort at an address of the node', async () => {
    const service = shop.services.get(empty as ServicePortKey)!;
    const frontends = service.frontends.filter(({ kind }) => kind === 'nodePort');
    const table = { ...tableOf({}), services: new Map([[service.key, { ...service, frontends }]]) };
    const view = serviceView({ tables: new Map([['IPv4', table]]) });
    expect(await lossOf('noEndpoints', empty, view)).toMatchObject({ frontend: '192.0.2.1:30081/TCP' });
    const nowhere = serviceView({ tables: new Map([['IPv4', table]]), nodeAddresses: [] });
    expect(await lossOf('noEndpoints', empty, nowhere)).toMatchObject({ frontend: empty });
  });

  test('names a frontend of IPv6 where IPv4 has none', async () => {
    const { tables } = serviceView();
    const view = serviceView({ tables: new Map([...tables].filter(([family]) => family === 'IPv6')) });
    expect(await lossOf('noEndpoints', empty, view)).toMatchObject({ frontend: '[fd00:10:96::b]:80/TCP' });
  });

  test('is of a socket where sockets are translated', async () => {
    const loss = await lossOf('noEndpoints', empty, serviceView({ traits: socketTraits }));
    expect(loss).toMatchObject({ frontend: '10.96.0.11:80/TCP', where: { netns: 'socket', hook: undefined } });
  });
});
