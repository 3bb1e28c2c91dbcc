import type { ApplyOutcome, ServiceCounters } from '@switchyard/core/engine';
import type { ServicePortKey } from '@switchyard/core';
import { expect, test } from 'vitest';
import { type MapsOutcome, mergeOutcomes, sumCounters } from './merge-outcomes.ts';

const [a, b] = ['shop/a:/TCP', 'shop/b:/TCP'] as unknown as [ServicePortKey, ServicePortKey]; // as a table has them
const [first, second] = [new Error('first'), new Error('second')];
const fine: MapsOutcome = { writes: 3, failed: new Map() };

test.each<[string, MapsOutcome, readonly ApplyOutcome[], ApplyOutcome]>([
  ['nothing of the rules: what the maps took', fine, [], { status: 'applied', writes: 3 }],
  ['both took it: the sum', fine, [{ status: 'applied', writes: 2 }], { status: 'applied', writes: 5 }],
  [
    'services that fail in either have failed',
    { writes: 1, failed: new Map([[a, first]]) },
    [{ status: 'partial', writes: 1, failed: new Map([[b, second]]) }],
    {
      status: 'partial',
      writes: 2,
      failed: new Map([
        [a, first],
        [b, second],
      ]),
    },
  ],
  [
    'rules that failed as a whole: nothing is known',
    fine,
    [{ status: 'failed', error: first }],
    { status: 'failed', error: first },
  ],
  [
    'the error of a removal is reported',
    fine,
    [{ status: 'applied', writes: 0, unremoved: second }],
    { status: 'applied', writes: 3, unremoved: second },
  ],
])('%s', (_, maps, rules, expected) => {
  expect(mergeOutcomes(maps, rules)).toEqual(expected);
});

test('counters of one service are added, others stay', () => {
  const counters = (connections: number, noEndpoints: number): ServiceCounters => ({
    connections,
    drops: { noLocalEndpoint: 0, noEndpoints, sourceRange: 1 },
  });
  const sum = sumCounters(
    new Map([[a, counters(1, 0)]]),
    new Map([
      [a, counters(2, 5)],
      [b, counters(7, 0)],
    ]),
  );
  expect([...sum]).toEqual([
    [a, { connections: 3, drops: { noLocalEndpoint: 0, noEndpoints: 5, sourceRange: 2 } }],
    [b, counters(7, 0)],
  ]);
});
