import type { ServiceForwarding } from '@switchyard/core';
import { here, situation, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { ClassPool } from '../kernel/service-elements.ts';
import { diffElements, diffPlaced, renderService } from './render-service.ts';
import type { Change } from './elements.ts';
import {
  noPreviousNumbers,
  noSlots,
  type PlacedService,
  placeService,
  previousNumbers,
  previousSlots,
} from './place-service.ts';

const exactLimit = 4;
const context = { suffix: '4', exactLimit, hasAffinity: true, classes: new ClassPool('4') } as const;

function cart(pods: readonly number[], affinitySeconds?: number): ServiceForwarding {
  const endpoints = pods.map((pod) => (pod < 5 ? there(`10.244.2.${pod}`) : here(`10.244.1.${pod}`)));
  const [service] = situation({
    cart: {
      endpoints,
      ports: [{ nodePort: 30080 }],
      external: 'Local',
      ...(affinitySeconds === undefined ? {} : { affinitySeconds }),
    },
  }).services.values();
  return service as ServiceForwarding; // one Service, one port
}

const next = (before: PlacedService, service: ServiceForwarding): PlacedService =>
  placeService(service, {
    id: before.id,
    previous: previousSlots(before, exactLimit),
    numbers: previousNumbers(before),
    exactLimit,
    hasAffinity: true,
  });

const first = (service: ServiceForwarding): PlacedService =>
  placeService(service, { id: 7, previous: noSlots, numbers: noPreviousNumbers, exactLimit, hasAffinity: true });

/** The elements after the changes; throws where the kernel would refuse. */
function applied(elements: ReadonlyMap<string, string>, changes: readonly Change[]): ReadonlyMap<string, string> {
  const after = new Map(elements);
  for (const change of changes) {
    if (change.kind === 'delete' && !after.delete(change.id)) throw new Error(`${change.id} is not there`);
    if (change.kind !== 'add') continue;
    if (after.has(change.id)) throw new Error(`${change.id} is there`);
    after.set(change.id, change.data);
  }
  return after;
}

const elementsOf = (placed: PlacedService): ReadonlyMap<string, string> =>
  applied(new Map(), renderService(placed, context));

const affinities: readonly (readonly [before: number | undefined, after: number | undefined])[] = [
  [undefined, undefined],
  [60, 60],
  [60, 90],
  [60, undefined],
  [undefined, 60],
];

describe.each(affinities)('diffPlaced, affinity %s then %s', (affinityBefore, affinityAfter) => {
  test.each<[string, readonly number[], readonly number[]]>([
    ['an endpoint more', [1, 2], [1, 2, 3]],
    ['an endpoint less', [1, 2, 3], [2, 3]],
    ['all others', [1, 2], [5, 6, 7]],
    ['none left', [1, 5], []],
    ['the first ones', [], [1, 5]],
    ['so many that slots repeat', [1, 2, 3, 4], [1, 2, 3, 4, 5, 6]],
    ['one more among many', [1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6]],
    ['few again', [1, 2, 3, 4, 5, 6], [6, 1]],
  ])('%s: what is left is what the new version renders to', (_, before, after) => {
    const old = first(cart(before, affinityBefore));
    const wanted = next(old, cart(after, affinityAfter));
    expect(applied(elementsOf(old), diffPlaced(old, wanted, context))).toEqual(elementsOf(wanted));
  });

  test('from nothing and to nothing', () => {
    const placed = first(cart([1, 5], affinityBefore));
    const elements = elementsOf(placed);
    expect(applied(new Map(), diffPlaced(undefined, placed, context))).toEqual(elements);
    expect(applied(elements, diffPlaced(placed, undefined, context)).size).toBe(0);
    expect(diffPlaced(placed, placed, context)).toEqual([]);
  });
});

describe('diffElements', () => {
  test('replaces what differs, adds what is missing, deletes what is too much', () => {
    const before = [
      { id: 'a', data: '1' },
      { id: 'b', data: '1' },
      { id: 'c', data: '1' },
    ];
    const wanted = [
      { kind: 'add', id: 'a', data: '1' },
      { kind: 'add', id: 'b', data: '2' },
      { kind: 'add', id: 'd', data: '1' },
    ] as const;
    expect(diffElements(before, wanted)).toEqual([
      { kind: 'delete', id: 'b' },
      { kind: 'add', id: 'b', data: '2' },
      { kind: 'add', id: 'd', data: '1' },
      { kind: 'delete', id: 'c' },
    ]);
  });
});

describe('slots', () => {
  test('are not kept while they stand in the order of the endpoints', () => {
    const placed = first(cart([1, 2, 3]));
    expect(placed.slots).toBeUndefined();
    expect(next(placed, cart([1, 2, 3, 4])).slots).toBeUndefined();
    expect(next(placed, cart([1, 3])).slots).toBeUndefined();
  });

  test('are endpoints of the version that is applied, not of one before', () => {
    const wanted = next(first(cart([1, 2, 3])), cart([2, 3]));
    expect(wanted.slots?.Cluster?.map(({ address }) => address)).toEqual(['10.244.2.3', '10.244.2.2']);
    expect(wanted.slots?.Cluster?.every((endpoint) => wanted.service.endpoints.Cluster.includes(endpoint))).toBe(true);
  });
});
