import { describe, expect, test } from 'vitest';
import { compareRules, type MarkedRules, marksOf } from './rule-marks.ts';

const bytes = (text: string): Uint8Array => Buffer.from(text);
const settings = (text: string): readonly [number, Uint8Array][] => [[4, bytes(text)]];

/** Chains and their rules, each by its expressions; handles count from 1 in the order given. */
function rules(chains: Readonly<Record<string, readonly string[]>>, more: Partial<MarkedRules> = {}): MarkedRules {
  let handle = 0n;
  return {
    flags: 0,
    chains: Object.keys(chains).map((name) => ({ name, settings: settings(name === 'nat' ? 'hook' : '') })),
    sets: [{ name: 'frontends4', settings: settings('a map') }],
    rules: Object.entries(chains).flatMap(([chain, expressions]) =>
      expressions.map((text) => ({ chain, handle: ++handle, expressions: bytes(text) })),
    ),
    classes: [{ map: 'lb4-classes', element: { key: bytes('1'), data: bytes('goto lb4-1') } }],
    ...more,
  };
}

const loaded = { nat: ['goto services'], services: ['look up', 'look up again', 'drop'], 'lb4-1': ['dnat'] };
const marks = marksOf(rules(loaded));
const nothing = { rules: [], chains: [], sets: [] };

test('rules as they were loaded are intact', () => {
  expect(compareRules(rules(loaded), marks)).toEqual({ kind: 'intact', foreign: nothing });
});

describe('a foreign object', () => {
  test.each<[string, readonly string[], readonly bigint[]]>([
    ['a rule in front of our rules', ['accept', 'look up', 'look up again', 'drop'], [2n]],
    ['a rule between ours', ['look up', 'accept', 'look up again', 'drop'], [3n]],
    ['a rule behind ours', ['look up', 'look up again', 'drop', 'accept'], [5n]],
    ['a copy of one of our rules', ['look up', 'look up', 'look up again', 'drop'], [3n]],
    ['several rules', ['accept', 'look up', 'accept', 'look up again', 'drop', 'accept'], [2n, 4n, 7n]],
  ])('%s is distinguished from our rules', (_, services, handles) => {
    const verdict = compareRules(rules({ ...loaded, services }), marks);
    expect(verdict.kind === 'intact' && verdict.foreign.rules.map(({ handle }) => handle)).toEqual(handles);
  });

  test('a chain, its rules, and a set', () => {
    const more = { sets: [...rules(loaded).sets, { name: 'theirs', settings: settings('') }] };
    expect(compareRules(rules({ ...loaded, theirs: ['drop'] }, more), marks)).toEqual({
      kind: 'intact',
      foreign: {
        rules: [{ chain: 'theirs', handle: 6n, expressions: bytes('drop') }],
        chains: ['theirs'],
        sets: ['theirs'],
      },
    });
  });
});

describe('rules are damaged', () => {
  test.each<[string, MarkedRules]>([
    ['without one of them', rules({ ...loaded, services: ['look up', 'drop'] })],
    ['with another in its place', rules({ ...loaded, services: ['look up', 'look up again', 'accept'] })],
    ['in another order', rules({ ...loaded, services: ['look up again', 'look up', 'drop'] })],
    ['in another chain', rules({ ...loaded, nat: [], 'lb4-1': ['goto services', 'dnat'] })],
    ['without a chain', rules({ nat: loaded.nat, services: loaded.services })],
    ['with another hook', rules(loaded, { chains: [{ name: 'nat', settings: settings('other') }] })],
    ['in a table that sleeps', rules(loaded, { flags: 1 })],
    ['with a map declared otherwise', rules(loaded, { sets: [{ name: 'frontends4', settings: settings('a set') }] })],
    ['without a class', rules(loaded, { classes: [] })],
    [
      'with a class that leads elsewhere',
      rules(loaded, { classes: [{ map: 'lb4-classes', element: { key: bytes('1'), data: bytes('goto nowhere') } }] }),
    ],
    [
      'with one more class',
      rules(loaded, {
        classes: [...rules(loaded).classes, { map: 'lb4-classes', element: { key: bytes('2'), data: bytes('drop') } }],
      }),
    ],
    ['with a chain of a class that was never marked, for packets may use it', rules({ ...loaded, 'lb4-300': ['x'] })],
  ])('%s', (_, damaged) => {
    expect(compareRules(damaged, marks).kind).toBe('damaged');
  });

  test('where there are no marks at all', () => {
    expect(compareRules(rules(loaded), new Set()).kind).toBe('damaged');
  });
});

test('a chain made later is right once its own marks are there', () => {
  const later = rules({ ...loaded, 'aff4-3-60': ['pin', 'pick'] });
  const part = { ...later, flags: undefined, sets: [], classes: [] };
  const own = {
    chains: part.chains.filter(({ name }) => name === 'aff4-3-60'),
    rules: part.rules.filter(({ chain }) => chain === 'aff4-3-60'),
    sets: [],
    classes: [],
  };
  expect(compareRules(later, new Set([...marks, ...marksOf(own)]))).toEqual({ kind: 'intact', foreign: nothing });
});
