import { expect, test } from 'vitest';
import type { ScenarioCase } from '../model/case.ts';
import { scenarioCases, smokeScenarios } from './scenario-cases.ts';

const nftables = scenarioCases({ dataplane: 'nftables', cell: 'dual' });
const ebpf = scenarioCases({ dataplane: 'ebpf', cell: 'dual' });

function caseOf(id: string, cases: readonly ScenarioCase[] = nftables): ScenarioCase {
  const found = cases.find((one) => one.id === id);
  if (found === undefined) throw new Error(`no case is called ${id}`);
  return found;
}

test.each([
  ['a file with one family at a time', 'scenario/etp-local/ipv6', 'IPv6'],
  ['a dual-stack file, with IPv4 as the first family', 'scenario/dual-stack-endpoints/dual-ipv4', 'dual'],
  ['a dual-stack file, with IPv6 as the first family', 'scenario/dual-stack-endpoints/dual-ipv6', 'dual'],
])('%s is the case %s', (_, id, families) => {
  expect(caseOf(id).families).toBe(families);
});

test.each([
  ['a restart of the proxy', 'scenario/restart/ipv4', 'restartProxy'],
  ['flags', 'scenario/masquerade-all/ipv4', 'configureProxy'],
  ['packets from outside', 'scenario/etp-local/ipv4', 'sendFromOutside'],
  ['another address of the Node', 'scenario/node-port-primary/ipv4', 'changeNodes'],
  ['SCTP', 'scenario/sctp/ipv4', 'sctp'],
] as const)('a scenario with %s needs an environment that can (%s: %s)', (_, id, ability) => {
  expect(caseOf(id).needs).toContain(ability);
});

test('a scenario with pods alone needs nothing', () => {
  expect(caseOf('scenario/itp-local/ipv4').needs).toEqual([]);
});

test('a scenario that a dataplane does not promise says why', () => {
  expect(caseOf('scenario/unknown-port-sctp/ipv4', ebpf).notFor).toMatch(/^not for ebpf: /);
  expect(caseOf('scenario/unknown-port-sctp/ipv4').notFor).toBeUndefined();
});

test('tags name the kind first, then protocols and features', () => {
  expect(caseOf('scenario/terminating-fallback-local/ipv6').tags).toEqual([
    'scenario',
    'tcp',
    'node-port',
    'load-balancer',
    'etp-local',
    'terminating',
    'health-check',
  ]);
});

test('the smoke cases are there, are IPv4 first, and run with every dataplane', () => {
  const smoke = ebpf.filter(({ tags }) => tags.includes('smoke'));
  expect(smoke.map(({ scenario }) => scenario.id)).toEqual([...smokeScenarios].sort());
  expect(smoke.filter(({ scenario, notFor }) => scenario.ipFamily !== 'IPv4' || notFor !== undefined)).toEqual([]);
});

test('in a cluster of IPv6 alone the smoke cases are IPv6', () => {
  const smoke = scenarioCases({ dataplane: 'ebpf', cell: 'ipv6' }).filter(({ tags }) => tags.includes('smoke'));
  expect(new Set(smoke.map(({ scenario }) => scenario.ipFamily))).toEqual(new Set(['IPv6']));
  expect(smoke).toHaveLength(smokeScenarios.size);
});
