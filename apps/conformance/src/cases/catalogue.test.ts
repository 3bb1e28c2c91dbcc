import { allScenarios, dataplaneNamed } from '@switchyard/scenarios';
import { describe, expect, test } from 'vitest';
import { catalogue, isInCell } from './catalogue.ts';
import { scenarioCases } from './scenario-cases.ts';

const dataplanes = ['nftables', 'iptables', 'ebpf'] as const;

describe.each(dataplanes)('the catalogue for %s', (dataplane) => {
  const all = catalogue({ dataplane, cell: 'dual' });

  test('has each id once, in lower case but for words of the API', () => {
    const ids = all.map(({ id }) => id);
    expect([...ids].sort()).toEqual([...new Set(ids)].sort());
    const api = /\b(clusterIP|externalIP|loadBalancerIP|nodePort|Cluster|Local|Recreate|RollingUpdate)\b/g;
    expect(ids.filter((id) => !/^[a-z0-9/-]+$/.test(id.replaceAll(api, 'x')))).toEqual([]);
  });

  test('says of each case in a sentence what must be so and why', () => {
    expect(all.filter(({ title, why }) => title.length < 10 || why.length < 10).map(({ id }) => id)).toEqual([]);
  });

  test('gives the kind of a case as the first part of its id and as its first tag', () => {
    expect(all.filter(({ id, tags }) => tags[0] !== id.split('/')[0]).map(({ id }) => id)).toEqual([]);
  });

  test('has every scenario file in every family', () => {
    const scenarios = allScenarios(dataplaneNamed(dataplane)).map(({ id, ipFamily }) => `${id} ${ipFamily}`);
    const cases = scenarioCases({ dataplane, cell: 'dual' }).map(
      ({ scenario }) => `${scenario.id} ${scenario.ipFamily}`,
    );
    expect(cases).toEqual(scenarios);
  });
});

describe('cells', () => {
  test.each([
    ['IPv4', 'ipv4', true],
    ['IPv4', 'ipv6', false],
    ['IPv6', 'ipv6', true],
    ['IPv6', 'dual', true],
    ['dual', 'dual', true],
    ['dual', 'ipv4', false],
    ['dual', 'ipv6', false],
  ] as const)('a case of %s in a cluster of %s: %s', (families, cell, expected) => {
    expect(isInCell(families, cell)).toBe(expected);
  });

  test('a cluster of one family can have all cases, with the smoke tests of its family', () => {
    const dual = catalogue({ dataplane: 'nftables', cell: 'dual' }).map(({ id }) => id);
    const all = catalogue({ dataplane: 'nftables', cell: 'ipv6', hasAllFamilies: true });
    expect(all.map(({ id }) => id).toSorted()).toEqual(dual.toSorted());
    expect(all.find(({ id }) => id === 'scenario/node-port/ipv6')?.tags).toContain('smoke');
  });

  test.each([
    ['ipv4', 'IPv4'],
    ['ipv6', 'IPv6'],
  ] as const)('a cluster of %s alone has only cases of %s', (cell, family) => {
    const cases = catalogue({ dataplane: 'nftables', cell });
    expect(cases.length).toBeGreaterThan(60);
    expect(new Set(cases.map(({ families }) => families))).toEqual(new Set([family]));
  });
});
