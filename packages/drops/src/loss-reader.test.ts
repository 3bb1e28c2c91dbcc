import { millis, parseCidr, type ServicePortKey } from '@switchyard/core';
import { service, slice, tableOf } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { PlacedDrop } from './kernel/drop-counter.ts';
import type { LossReading, LossSources, ServiceView } from './loss-reader.ts';
import { type DropSpec, place, placedDrop, podNetns, tcp } from './testing/placed-drop.ts';
import { counted, FakeCounter, now, readerOf } from './testing/reader.ts';
import { serviceView, shop } from './testing/shop.ts';

const { signal } = new AbortController();
/** Drops of requests to a Service without endpoints. */
const refused = (spec: DropSpec = {}) => placedDrop({ to: '10.96.0.11:80', ...spec });

/** The first reading of these drops. */
async function readingOf(drops: readonly PlacedDrop[], view: Partial<ServiceView> = {}): Promise<LossReading> {
  return readerOf({ counter: new FakeCounter(counted(...drops)) }).read(serviceView(view), signal);
}

const causesOf = ({ losses }: LossReading) => losses.map(({ cause }) => cause);

describe('losses', () => {
  test('that are equal are one, with their sum', async () => {
    const { losses } = await readingOf([
      refused({ count: 2 }),
      refused({ count: 3, from: '10.244.9.9:40001' }),
      refused({ count: 4, last: millis(2000), length: 61 }),
    ]);
    expect(losses).toMatchObject([
      { cause: 'noEndpoints', service: 'shop/empty:/TCP', client: '10.244.9.9', count: 9 },
    ]);
  });

  const filtered: DropSpec = { to: '10.96.0.10:80', reason: 'IP_RPFILTER' };
  const toCart: DropSpec = { to: '10.96.0.10:80' };
  test.each<readonly [string, DropSpec, DropSpec]>([
    ['client', {}, { from: '10.244.9.8:40000' }],
    ['frontend', {}, { to: '192.0.2.1:30081' }],
    ['cause', {}, { reason: 'IP_RPFILTER' }],
    ['hook', {}, { place: place('rule', 'output') }],
    ['namespace', filtered, { netns: podNetns }],
    [
      'direction',
      toCart,
      { from: '10.96.0.10:80', to: '10.244.9.9:1', direction: 'answer', tcpFlags: tcp.syn | tcp.ack },
    ],
  ])('of another %s are another one', async (_, spec, other) => {
    const drops = [
      refused({ ...spec, count: 2 }),
      refused({ ...spec, ...other, count: 3 }),
      refused({ ...spec, count: 4 }),
    ];
    const { losses } = await readingOf(drops);
    expect(losses.map(({ count }) => count)).toEqual([6, 3]);
  });

  test('that have only another reason in their text are another one', async () => {
    const { losses } = await readingOf([refused({ reason: 'NOMEM' }), refused({ reason: 'CPU_BACKLOG' })]);
    expect(losses.map(({ reason }) => reason)).toEqual(['NOMEM', 'CPU_BACKLOG']);
  });

  test('are of one reading', async () => {
    const reader = readerOf({ counter: new FakeCounter(counted(refused({ count: 2 })), counted(refused())) });
    expect((await reader.read(serviceView(), signal)).losses).toMatchObject([{ count: 2 }]);
    expect((await reader.read(serviceView(), signal)).losses).toMatchObject([{ count: 1 }]);
    expect((await reader.read(serviceView(), signal)).losses).toEqual([]);
  });

  test('are explained by the table of their IP family', async () => {
    const drop = refused({ from: '[fd00:10:244::9]:40000', to: '[fd00:10:96::b]:80' });
    expect((await readingOf([drop])).losses).toMatchObject([{ cause: 'noEndpoints', client: 'fd00:10:244::9' }]);
  });
});

describe('other drops', () => {
  test('of no Service are unrelated', async () => {
    const reading = await readingOf([
      placedDrop({ to: '203.0.113.7:80', count: 5 }),
      refused(),
      placedDrop({ to: '203.0.113.8:80', count: 6 }),
    ]);
    expect(reading).toMatchObject({ unrelated: 11, losses: [{ count: 1 }] });
  });

  test('of a family without a table are unrelated', async () => {
    expect(await readingOf([refused({ count: 4 })], { tables: new Map() })).toMatchObject({ unrelated: 4, losses: [] });
  });

  test('that were evicted are missed', async () => {
    const counter = new FakeCounter({ drops: [refused()], missed: 17 });
    const reader = readerOf({ counter });
    expect(await reader.read(serviceView(), signal)).toMatchObject({
      missed: 17,
      unrelated: 0,
      losses: [{ count: 1 }],
    });
    expect(await reader.read(serviceView(), signal)).toEqual({ missed: 0, unrelated: 0, losses: [] });
  });
});

describe('namespaces', () => {
  const podCidrs = [parseCidr('10.244.1.0/24')];
  const foreign = { netns: podNetns, reason: 'IP_RPFILTER' };

  test.each<readonly [string, DropSpec, Partial<ServiceView>, number]>([
    ['of the node', { reason: 'IP_RPFILTER' }, { podCidrs }, 1],
    ['that is not known', { ...foreign, netns: 0 }, { podCidrs }, 1],
    ['of a pod, to it', { ...foreign, to: '10.244.1.5:8080' }, { podCidrs }, 1],
    ['of a pod, as it sends', { ...foreign, from: '10.244.1.9:1', place: place('rule', 'output') }, { podCidrs }, 1],
    [
      'of a pod, after its routing',
      { ...foreign, from: '10.244.1.9:1', place: place('rule', 'postrouting') },
      { podCidrs },
      1,
    ],
    [
      'of another node, from a pod',
      { ...foreign, from: '10.244.1.9:1', place: place('rule', 'prerouting') },
      { podCidrs },
      0,
    ],
    [
      'of another node, from a pod at no hook',
      { ...foreign, from: '10.244.1.9:1', place: place('kernel') },
      { podCidrs },
      0,
    ],
    ['of a pod of another node', { ...foreign, to: '10.244.2.5:8080' }, { podCidrs }, 0],
    ['of another kernel user, as it sends', { ...foreign, place: place('rule', 'output') }, { podCidrs }, 0],
    ['of a pod of another node, but all are of this node', { ...foreign, to: '10.244.2.5:8080' }, {}, 1],
  ])('%s', async (_, spec, view, count) => {
    const reading = await readingOf([placedDrop(spec)], view);
    expect(reading.losses).toHaveLength(count);
    expect(reading.unrelated).toBe(0);
  });
});

describe('a table before', () => {
  const emptyCart = tableOf({ services: [service('shop/cart')] });
  const cart = tableOf({
    services: [service('shop/cart')],
    slices: [slice('shop/cart', { endpoints: ['10.244.1.5'] })],
  });

  const none = tableOf({});
  type Applied = readonly [table: typeof cart, age: number];
  const viewOf = ([table, age]: Applied, proxyLag = 0) => {
    const tables = new Map([['IPv4', table]] as const);
    return serviceView({ tables, tableAges: new Map([['IPv4', millis(age)]]), proxyLag: millis(proxyLag) });
  };

  /** The cause of a drop some milliseconds ago, read after these tables, each with the time since its apply. */
  async function causeOf(ago: number, applied: readonly Applied[], proxyLag = 0) {
    const drop = placedDrop({ last: millis(now - ago) });
    const reader = readerOf({ counter: new FakeCounter(...applied.slice(1).map(() => counted()), counted(drop)) });
    let reading: LossReading | undefined;
    for (const one of applied) reading = await reader.read(viewOf(one, proxyLag), signal);
    return reading?.losses[0]?.cause;
  }

  test.each([
    ['longer ago than the apply', 500, 0, 'noEndpoints'],
    ['a little after the apply', 381, 0, 'noEndpoints'],
    ['after the apply', 380, 0, 'otherRule'],
    ['within the lag of the proxy', 281, 100, 'noEndpoints'],
    ['after the lag of the proxy', 280, 100, 'otherRule'],
  ] as const)('explains a drop, or not: %s', async (_, ago, proxyLag, cause) => {
    const applied: readonly Applied[] = [
      [emptyCart, 3000],
      [cart, 400],
    ];
    expect(await causeOf(ago, applied, proxyLag)).toBe(cause);
  });

  test.each([
    [300, 'otherRule'],
    [1500, 'noEndpoints'],
    [2500, 'notYetApplied'],
    [3500, 'notYetApplied'],
  ])('is the one in force at a drop %i ms ago', async (ago, cause) => {
    const applied: readonly Applied[] = [
      [none, 3000],
      [emptyCart, 2000],
      [cart, 400],
    ];
    expect(await causeOf(ago, applied)).toBe(cause);
  });

  test.each([
    ['kept', 5000, 0, 'noEndpoints'],
    ['forgotten', 5001, 0, 'otherRule'],
    ['kept for the lag of the proxy', 5100, 100, 'noEndpoints'],
    ['forgotten after the lag of the proxy', 5101, 100, 'otherRule'],
  ] as const)('is %s', async (_, age, proxyLag, cause) => {
    const applied: readonly Applied[] = [
      [emptyCart, 60_000],
      [cart, age],
    ];
    expect(await causeOf(6000, applied, proxyLag)).toBe(cause);
  });

  test.each([
    ['had no endpoint yet, such as a readiness probe of a new pod', 600, undefined],
    ['had it', 300, 'noListener'],
    ['had it, which is known a little late', 415, 'noListener'],
  ] as const)('decides about a packet straight to an endpoint when the Service %s', async (_, ago, cause) => {
    const drop = placedDrop({
      to: '10.244.1.5:8080',
      reason: 'NO_SOCKET',
      place: place('tcp', 'input'),
      last: millis(now - ago),
    });
    const reader = readerOf({ counter: new FakeCounter(counted(), counted(drop)) });
    const starting = tableOf({
      services: [service('shop/cart')],
      slices: [slice('shop/cart', { endpoints: [{ ip: '10.244.1.5', ready: false, serving: false }] })],
    });
    await reader.read(viewOf([starting, 3000]), signal);
    expect((await reader.read(viewOf([cart, 400]), signal)).losses[0]?.cause).toBe(cause);
  });

  test('is none where only one table was read', async () => {
    expect(await causeOf(500, [[cart, 400]])).toBe('otherRule');
  });

  test('is the one at the start', async () => {
    const reader = readerOf({ counter: new FakeCounter(counted(placedDrop({ last: millis(now - 500) }))) });
    await reader.start(viewOf([emptyCart, 3000]), signal);
    expect(causesOf(await reader.read(viewOf([cart, 400]), signal))).toEqual(['noEndpoints']);
  });
});

describe('connection tracking', () => {
  const files = (...drops: readonly (number | undefined)[]) => {
    const left = [...drops];
    return (path: string) => {
      if (path !== '/proc/net/stat/nf_conntrack') return undefined;
      const drop = left.shift();
      return drop === undefined ? undefined : `entries drop insert_failed\n00000000 ${drop.toString(16)} 00000000\n`;
    };
  };
  const drop = placedDrop({ place: place('hook', 'prerouting') });

  test.each([
    ['grew', [15, 16], 'conntrackFull'],
    ['stayed', [15, 15], 'otherRule'],
    ['shrank', [15, 1], 'otherRule'],
    ['was not there before', [undefined, 1], 'otherRule'],
    ['is not there any more', [15, undefined], 'otherRule'],
  ] as const)('is full, if its counter grew: it %s', async (_, drops, cause) => {
    const reader = readerOf({ counter: new FakeCounter(counted(drop)), readFile: files(...drops) });
    expect(causesOf(await reader.read(serviceView(), signal))).toEqual([cause]);
  });

  test('is no longer full in the next reading', async () => {
    const reader = readerOf({ counter: new FakeCounter(counted(drop), counted(drop)), readFile: files(15, 16, 16) });
    expect(causesOf(await reader.read(serviceView(), signal))).toEqual(['conntrackFull']);
    expect(causesOf(await reader.read(serviceView(), signal))).toEqual(['otherRule']);
  });
});

describe('counters of Services', () => {
  const key = 'shop/empty:/TCP' as ServicePortKey;
  const refusals = (...counts: readonly number[]): NonNullable<LossSources['readCounters']> => {
    const left = [...counts];
    return async () => {
      const drops = { noEndpoints: left.shift() ?? 0, noLocalEndpoint: 0, sourceRange: 0 };
      return [new Map([[key, { connections: 0, drops }]])];
    };
  };

  test('report all refusals where packets are not watched', async () => {
    const reader = readerOf({ readCounters: refusals(10, 13) });
    await reader.start(serviceView(), signal);
    const reading = await reader.read(serviceView(), signal);
    expect(reading).toMatchObject({
      unrelated: 0,
      missed: 0,
      losses: [{ cause: 'noEndpoints', service: key, count: 3 }],
    });
    expect(reading.losses[0]?.client).toBeUndefined();
    expect(reader.watchesPackets).toBe(false);
  });

  test('report only what packets have not shown', async () => {
    const counter = new FakeCounter(counted(refused({ count: 2 }), refused({ count: 1, from: '10.244.9.8:40000' })));
    const reader = readerOf({ counter, readCounters: refusals(10, 17, 20) });
    await reader.start(serviceView(), signal);
    const { losses } = await reader.read(serviceView(), signal);
    expect(losses.map(({ client, count }) => [client, count])).toEqual([
      ['10.244.9.9', 2],
      ['10.244.9.8', 1],
      [undefined, 4],
    ]);
    expect((await reader.read(serviceView(), signal)).losses).toMatchObject([{ count: 3 }]);
  });

  test('are read before the packets', async () => {
    const order: string[] = [];
    const readCounters = async () => {
      await Promise.resolve();
      order.push('counters');
      return [];
    };
    const counter = { read: () => (order.push('packets'), counted()), [Symbol.dispose]: () => {} };
    await readerOf({ counter, readCounters }).read(serviceView(), signal);
    expect(order).toEqual(['counters', 'packets']);
  });

  test('that cannot be read make the reading reject', async () => {
    const failure = new Error('no counters');
    const reader = readerOf({ counter: new FakeCounter(), readCounters: async () => Promise.reject(failure) });
    await expect(reader.start(serviceView(), signal)).rejects.toBe(failure);
    await expect(reader.read(serviceView(), signal)).rejects.toBe(failure);
  });
});

test('a reader disposes its counter', () => {
  const counter = new FakeCounter();
  const reader = readerOf({ counter });
  expect(reader.watchesPackets).toBe(true);
  reader[Symbol.dispose]();
  expect(counter.isDisposed).toBe(true);
});

test('a reader follows the tables of its readings', async () => {
  const counter = new FakeCounter(
    counted(placedDrop({ to: '10.244.8.8:8080' })),
    counted(placedDrop({ to: '10.244.8.8:8080' })),
  );
  const reader = readerOf({ counter });
  const grown = tableOf({
    services: [service('shop/cart')],
    slices: [slice('shop/cart', { endpoints: ['10.244.8.8'] })],
  });
  expect(await reader.read(serviceView({ tables: new Map([['IPv4', shop]]) }), signal)).toMatchObject({ unrelated: 1 });
  const second = await reader.read(serviceView({ tables: new Map([['IPv4', grown]]) }), signal);
  expect(second).toMatchObject({ unrelated: 0, losses: [{ service: 'shop/cart:/TCP' }] });
});
