import { expect, test } from 'vitest';
import type { TargetHealth } from '../spec/target-health.ts';
import { exampleSpec, nodeTargets, portSpec } from '../testing/example-specs.ts';
import { usableTargets } from './usable-targets.ts';

const names = (targets: readonly { readonly name: string }[]): string => targets.map(({ name }) => name).join(' ');

test.each([
  {
    up: 'node1 node2',
    draining: undefined,
    forNew: 'node1 node2',
    forOld: 'node1 node2',
    rule: 'all that are UP serve',
  },
  { up: 'node2', draining: undefined, forNew: 'node2', forOld: 'node2', rule: 'what is DOWN does not' },
  { up: 'node1 node2', draining: 'node1', forNew: 'node2', forOld: 'node1 node2', rule: 'what drains serves on' },
  {
    up: 'node1',
    draining: 'node1',
    forNew: 'node1',
    forOld: 'node1',
    rule: 'a draining target serves when no other is UP',
  },
  { up: '', draining: undefined, forNew: '', forOld: '', rule: 'no target serves when none is UP' },
  { up: 'node1', empty: 'node1', forNew: '', forOld: '', rule: 'a target without an endpoint never serves' },
])('$rule', ({ up, draining, empty, forNew, forOld }) => {
  const health: TargetHealth = { isUp: (_, { name }) => up.split(' ').includes(name) };
  const targets = nodeTargets(30053, { ...(draining && { draining }), ...(empty && { empty }) });
  const port = portSpec(53, [...targets, ...nodeTargets(30053, { ipFamily: 'IPv6' })], 'UDP');
  const found = usableTargets({ spec: exampleSpec('dns', { ports: [port] }), port, ipFamily: 'IPv4' }, health);
  expect({ forNew: names(found.forNew), forOld: names(found.forOld) }).toEqual({ forNew, forOld });
  expect(found.present).toEqual(targets);
});
