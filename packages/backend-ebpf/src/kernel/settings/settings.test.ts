import { parseCidr, type PodDetector, seconds } from '@switchyard/core';
import { situation } from '@switchyard/core/testing';
import { MemoryBpfMap } from '@switchyard/native/testing';
import { describe, expect, test } from 'vitest';
import { mapShapes, offsetOf, smallestSizes } from '../../render/layouts.ts';
import { readElements } from '../small-map.ts';
import { Settings, type SettingsOfTable } from './settings.ts';

const shapes = mapShapes(smallestSizes);
const byCidr = (cidr: string): PodDetector => ({ kind: 'cidr', cidr: parseCidr(cidr) });

function table(podDetector: PodDetector, ...serviceCidrs: readonly string[]): SettingsOfTable {
  return { podDetector, serviceCidrs: serviceCidrs.map(parseCidr), services: new Map() };
}

function bench() {
  const maps = { configuration: new MemoryBpfMap(shapes.configuration), pod_cidrs: new MemoryBpfMap(shapes.pod_cidrs) };
  const constants = { hostNetns: () => 7n, udpSticky: seconds(60) };
  return { maps, settings: new Settings({ ...constants, maps: () => maps }) };
}

function podCidrsIn(map: MemoryBpfMap): readonly string[] {
  return [...readElements(map).keys()].sort();
}

const ten244 = `70000000${'00'.repeat(10)}ffff0af40000`; // 112 bits of ::ffff:10.244.0.0
const ten245 = `70000000${'00'.repeat(10)}ffff0af50000`;

describe('Settings', () => {
  test('what is there already is not written again', () => {
    const { settings } = bench();
    expect(settings.apply(table(byCidr('10.244.0.0/16'), '10.96.0.0/12'))).toBeGreaterThan(0);
    expect(settings.apply(table(byCidr('10.244.0.0/16'), '10.96.0.0/12'))).toBe(0);
  });

  test.each<[string, PodDetector, readonly string[]]>([
    ['a CIDR', byCidr('10.244.0.0/16'), [ten244]],
    ['another CIDR takes the place of the one before', byCidr('10.245.0.0/16'), [ten245]],
    ['an interface: no address is a pod by itself', { kind: 'interface', name: 'cni0' }, []],
    ['nothing', { kind: 'none' }, []],
  ])('pods are detected by %s', (_, detector, expected) => {
    const { settings, maps } = bench();
    settings.apply(table(byCidr('10.244.0.0/16')));
    settings.apply(table(detector));
    expect(podCidrsIn(maps.pod_cidrs)).toEqual(expected);
  });

  test.each<[string, (maps: ReturnType<typeof bench>['maps']) => void, readonly string[]]>([
    ['nothing was changed', () => undefined, []],
    ['the configuration was edited', (maps) => maps.configuration.values().set([9], 12), ['map configuration edited']],
    ['a guard was edited', (maps) => maps.configuration.values().set([9], 40), ['map configuration edited']],
    ['a pod CIDR was deleted', (maps) => maps.pod_cidrs.delete(Buffer.from(ten244, 'hex')), ['map pod_cidrs edited']],
    [
      'one was added',
      (maps) => maps.pod_cidrs.update(Buffer.from(ten245, 'hex'), Uint8Array.of(1)),
      ['map pod_cidrs edited'],
    ],
  ])('%s: it is reported, and repaired by the next apply', (_, damage, words) => {
    const { settings, maps } = bench();
    const wanted = table(byCidr('10.244.0.0/16'), '10.96.0.0/12');
    settings.apply(wanted);
    damage(maps);
    expect(settings.findDamage()).toEqual(words);
    settings.apply(wanted);
    expect(settings.findDamage()).toEqual([]);
  });

  describe('cluster IPs outside of all service CIDRs', () => {
    const inside: SettingsOfTable['services'] = situation({ cart: { clusterIps: ['10.96.0.10'] } }).services;
    const outside: SettingsOfTable['services'] = situation({ cart: { clusterIps: ['10.200.0.10'] } }).services;
    const isAnywhere = ({ maps }: ReturnType<typeof bench>): boolean =>
      maps.configuration.values()[offsetOf('configuration', 'guard_all')] === 1;
    const wanted = table(byCidr('10.244.0.0/16'), '10.96.0.0/12');

    test.each([
      ['none: only misses in the CIDR look for a guard', inside, false],
      ['one: every miss does', outside, true],
    ])('in the table, %s', (_, services, expected) => {
      const run = bench();
      run.settings.apply({ ...wanted, services });
      expect(isAnywhere(run)).toBe(expected);
      expect(run.settings.findDamage()).toEqual([]);
    });

    test('one that comes later counts from then on, until a whole table is without', () => {
      const run = bench();
      run.settings.apply({ ...wanted, services: inside });
      expect(run.settings.applyServices([...inside.values()])).toBe(0);
      expect(isAnywhere(run)).toBe(false);
      expect(run.settings.applyServices([...outside.values()])).toBe(1);
      expect(isAnywhere(run)).toBe(true);
      expect(run.settings.findDamage()).toEqual([]);
      run.settings.apply({ ...wanted, services: inside });
      expect(isAnywhere(run)).toBe(false);
    });
  });

  test('before the first apply nothing can be damaged', () => {
    expect(bench().settings.findDamage()).toEqual([]);
  });
});
