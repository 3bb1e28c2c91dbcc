import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { noId } from '../../render/layouts.ts';
import { FrontendIndex, noEntry } from './frontend-index.ts';

type Action =
  | { readonly kind: 'set'; readonly key: number; readonly service: number; readonly rest: number }
  | { readonly kind: 'delete'; readonly key: number };

const key = fc.nat({ max: 600 });
const anyAction: fc.Arbitrary<Action> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('set' as const), key, service: fc.nat({ max: 400 }), rest: fc.nat() }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('delete' as const), key }) },
);

const wordsOf = (number: number): Uint32Array => Uint32Array.of(0, 0, 0xffff0000, number << 24, 80, 0);

test('an index holds what a map of keys would, and the entries of each service', () => {
  fc.assert(
    fc.property(fc.array(anyAction, { maxLength: 1500, size: 'max' }), (actions) => {
      const index = new FrontendIndex();
      const model = new Map<string, readonly [service: number, rest: number]>();
      for (const action of actions) {
        const words = wordsOf(action.key);
        if (action.kind === 'set') {
          index.set(words, action.service, action.rest);
          model.set(words.join(), [action.service, action.rest]);
          continue;
        }
        const entry = index.find(words);
        expect(entry !== noEntry).toBe(model.delete(words.join()));
        if (entry !== noEntry) index.delete(entry);
      }
      expect(index.size).toBe(model.size);
      const found = index
        .entries()
        .map((entry) => [index.keyOf(entry).join(), [index.serviceOf(entry), index.restOf(entry)]]);
      expect(new Map(found as never)).toEqual(model);
      const services = new Set([...model.values()].map(([service]) => service));
      for (const service of services) {
        const keys = index.entriesOf(service).map((entry) => index.keyOf(entry).join());
        const wanted = [...model].flatMap(([text, [owner]]) => (owner === service ? [text] : []));
        expect(keys.toSorted()).toEqual(wanted.toSorted());
      }
      expect([index.hasAny(noId), index.hasAny(401)]).toEqual([false, false]);
    }),
    { numRuns: 30 },
  );
});

test('to delete one of many guards takes no longer than to delete a frontend', () => {
  const many = 20_000;
  const timeOf = (serviceOf: (number: number) => number): number => {
    const index = new FrontendIndex();
    const keys = Array.from({ length: many }, (_, number) => Uint32Array.of(0, 0, 0xffff0000, number, 0, 0));
    for (const [number, words] of keys.entries()) index.set(words, serviceOf(number), 0);
    const start = performance.now();
    for (const words of keys) index.delete(index.find(words));
    expect(index.size).toBe(0);
    return performance.now() - start;
  };
  timeOf((number) => number + 1); // compiled by now
  expect(timeOf(() => noId) / timeOf((number) => number + 1)).toBeLessThan(15);
});
