import type { ServiceForwarding } from '@switchyard/core';
import { situation, type SituationSpec, there } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import { KernelState } from '../kernel/adopt.ts';
import { ClassPool } from '../kernel/service-elements.ts';
import { diffPlaced, renderService } from './render-service.ts';
import {
  noPreviousNumbers,
  noSlots,
  type PlacedService,
  placeService,
  previousNumbers,
  previousSlots,
} from './place-service.ts';

const exactLimit = 1024;
const context = (): Parameters<typeof renderService>[1] => ({
  suffix: '4',
  exactLimit,
  hasAffinity: true,
  classes: new ClassPool('4'),
});

const pod = (number: number): string => `10.244.${number >> 8}.${number & 255}`;

function cart(pods: readonly number[], more: SituationSpec = {}): ServiceForwarding {
  const spec = { endpoints: pods.map((number) => there(pod(number))), affinitySeconds: 60, ...more };
  const [service] = situation({ cart: spec }).services.values();
  return service as ServiceForwarding; // one Service, one port
}

const place = (service: ServiceForwarding, hasAffinity = true): PlacedService =>
  placeService(service, { id: 7, previous: noSlots, numbers: noPreviousNumbers, exactLimit, hasAffinity });

const successor = (before: PlacedService, service: ServiceForwarding): PlacedService => {
  const numbers = previousNumbers(before);
  return placeService(service, {
    id: 7,
    previous: previousSlots(before, exactLimit),
    numbers,
    exactLimit,
    hasAffinity: true,
  });
};

const range = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);

const written = (elements: readonly { readonly id: string; readonly data: string }[], object: string): string[] =>
  elements.filter(({ id }) => id.startsWith(object)).map(({ id, data }) => `${id} : ${data}`);

describe('renderAffinity', () => {
  test('places lead to numbers, numbers to endpoints, the set to an affinity class, and there are no plain slots', () => {
    const elements = renderService(place(cart([1, 2])), context());
    expect(written(elements, 'aff-')).toEqual([
      'aff-endpoints4 0x10000e : 10.244.0.1 . 8080',
      'aff-endpoints4 0x20000e : 10.244.0.2 . 8080',
      'aff-slots4 0xe . 0 : 0x10000e',
      'aff-slots4 0xe . 1 : 0x20000e',
    ]);
    expect(written(elements, 'to-')).toEqual(['to-cluster4 0x7 : 0x8000000e']);
    expect(written(elements, 'endpoints')).toEqual([]);
  });

  test('a transport without affinity balances', () => {
    const elements = renderService(place(cart([1, 2]), false), context());
    expect(written(elements, 'aff-')).toEqual([]);
    expect(written(elements, 'to-')).toEqual(['to-cluster4 0x7 : 0x20000e']);
  });

  test('each set that is used has its own numbers and class', () => {
    const service = cart([1, 2], {
      endpoints: [{ ip: pod(1), node: 'n1' }, there(pod(2))],
      ports: [{ nodePort: 30080 }],
      external: 'Local',
    });
    const elements = renderService(place(service), context());
    expect(written(elements, 'to-')).toEqual(['to-cluster4 0x7 : 0x8000000e', 'to-local4 0x7 : 0x8010000f']);
    expect(written(elements, 'aff-endpoints').at(-1)).toBe('aff-endpoints4 0x10000f : 10.244.0.1 . 8080');
  });

  test('one endpoint less touches its own number and at most two places', () => {
    const before = place(cart([1, 2, 3, 4]));
    const changes = diffPlaced(before, successor(before, cart([1, 3, 4])), context());
    expect(
      changes.map((change) => `${change.kind} ${'id' in change ? change.id : ''}`).filter((line) => /aff-/.test(line)),
    ).toEqual([
      'delete aff-slots4 0xe . 1',
      'add aff-slots4 0xe . 1',
      'delete aff-endpoints4 0x20000e',
      'delete aff-slots4 0xe . 3',
    ]);
  });

  test('above 256 endpoints places repeat, so that classes do not run out', () => {
    const elements = renderService(place(cart(range(257))), context());
    expect(written(elements, 'aff-slots')).toHaveLength(4096);
    expect(written(elements, 'aff-endpoints')).toHaveLength(257);
  });

  test('as many endpoints as there are numbers', () => {
    expect(written(renderService(place(cart(range(4095))), context()), 'aff-endpoints')).toHaveLength(4095);
  });

  test('one more is refused, by name', () => {
    expect(() => place(cart(range(4096)))).toThrow(
      'cannot render shop/cart:/TCP: it has 4096 endpoints, one set holds 4095; split the Service or set its sessionAffinity to None',
    );
  });
});

describe('adoption', () => {
  test('numbers and places are recovered from the elements', () => {
    const first = place(cart([1, 2, 3]));
    const second = successor(first, cart([2, 3, 4]));
    const kernel = new KernelState();
    kernel.add(renderService(second, context()));
    const again = placeService(cart([2, 3, 4]), {
      id: 7,
      previous: kernel.previousSlots(7),
      numbers: kernel.previousNumbers(7),
      exactLimit,
      hasAffinity: true,
    });
    expect(renderService(again, context())).toEqual(
      expect.arrayContaining(renderService(second, context()) as unknown[]),
    );
    expect([...kernel.affinity.sets()]).toEqual([14, 14]);
  });

  test('a place that leads nowhere is a hole', () => {
    const kernel = new KernelState();
    kernel.add([
      { id: 'aff-slots4 0xe . 0', data: '0x50000e' },
      { id: 'aff-slots4 0xe . 2', data: '0x10000e' },
      { id: 'aff-endpoints4 0x10000e', data: '10.244.0.1 . 8080' },
    ]);
    expect(kernel.previousSlots(7)('Cluster')).toEqual([undefined, undefined, '10.244.0.1 . 8080']);
    expect(kernel.previousNumbers(7)('Cluster').next).toBe(2);
  });
});
