import { expect, test } from 'vitest';
import type { ServicePortKey } from '../../model/records/keys.ts';
import { type CountedTotal, ServiceCounts } from './service-counts.ts';

const cart = 'shop/cart:/TCP' as ServicePortKey;
const web = 'shop/web:/TCP' as ServicePortKey;

/** An object that counts, and for whom. */
interface Counting {
  readonly key: ServicePortKey;
  readonly id: string;
  readonly totals: readonly CountedTotal[];
}

const accepted: Counting = { key: cart, id: 'a', totals: ['connections'] };
const rejected: Counting = { key: cart, id: 'r', totals: ['connections', 'noEndpoints'] };

function read(counts: ServiceCounts, services: readonly Counting[], counted: Readonly<Record<string, number>>) {
  counts.beginReading();
  return counts.update({
    services,
    reading: new Map(Object.entries(counted)),
    keyOf: ({ key }) => key,
    visit: ({ id, totals }, count) => count(id, totals),
    isKnown: () => false,
  });
}

test('an object may add to several totals, and a service may have several objects', () => {
  const counts = new ServiceCounts();
  expect(read(counts, [accepted, rejected], { a: 2, r: 3 }).get(cart)).toEqual({
    connections: 5,
    drops: { noEndpoints: 3, noLocalEndpoint: 0, sourceRange: 0 },
  });
});

test('all totals of an object that is replaced go on', () => {
  const counts = new ServiceCounts();
  read(counts, [rejected], { r: 3 });
  counts.noteDeleted('r');
  expect(read(counts, [rejected], { r: 4 }).get(cart)).toMatchObject({ connections: 7, drops: { noEndpoints: 7 } });
});

test('many objects are replaced at once', () => {
  const counts = new ServiceCounts();
  read(counts, [accepted, rejected], { a: 2, r: 3 });
  counts.noteAllDeleted((id) => id === 'r');
  expect(read(counts, [accepted, rejected], { a: 2, r: 4 }).get(cart)?.connections).toBe(9);
});

test('an object that goes over to another service counts for that from then on', () => {
  const counts = new ServiceCounts();
  read(counts, [accepted, { ...rejected, id: 'x' }], { a: 2 });
  const moved = [
    { ...accepted, key: web },
    { ...rejected, id: 'x' },
  ];
  counts.noteDeleted('a');
  const after = read(counts, moved, { a: 1 });
  expect([after.get(cart)?.connections, after.get(web)?.connections]).toEqual([2, 1]);
});

test('returns whether any matching object has counted', () => {
  const counts = new ServiceCounts();
  read(counts, [accepted, rejected], { a: 2 });
  expect([counts.hasCounted((id) => id === 'a'), counts.hasCounted((id) => id === 'r')]).toEqual([true, false]);
});
