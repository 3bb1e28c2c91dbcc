import { diffTables, type ForwardingTable, type ServiceForwarding } from '@switchyard/core';
import { there, situation } from '@switchyard/core/testing';
import { expect, test } from 'vitest';
import { planRules, type RulesStep, wholeRules } from './plan-rules.ts';
import { ruleServicesOf } from './left-to-rules.ts';

const endpoints = [there('10.244.2.1')];
const [lbA, lbB] = ['198.51.100.7', '198.51.100.8'];
const ranges = ['192.0.2.0/24'];
type Specs = Parameters<typeof situation>[0];
const open: Specs = { cart: { endpoints, loadBalancerIps: [lbA] } };
const ranged: Specs = { cart: { endpoints, loadBalancerIps: [lbA], sourceRanges: ranges } };
const rangedTwo: Specs = { cart: { endpoints, loadBalancerIps: [lbA, lbB], sourceRanges: ranges } };
const sctp: Specs = { cart: { endpoints, ports: [{ port: 80, protocol: 'SCTP' }] } };
const none: Specs = {};

/** `service address:port ...`, one for each service. */
function texts(services: Iterable<ServiceForwarding>): string[] {
  return [...services].map(({ key, frontends }) =>
    [key, ...frontends.map(({ address, port }) => `${address}:${port}`)].join(' '),
  );
}

function stepText(step: RulesStep | undefined): unknown {
  if (step === undefined) return 'nothing';
  const { table, delta } = step;
  return { has: texts(table.services.values()), upserted: texts(delta.upserted), removed: delta.removed };
}

function plan(from: ForwardingTable, to: ForwardingTable): ReturnType<typeof planRules> {
  return planRules({ table: from, services: ruleServicesOf(from.services.values()) }, to, diffTables(from, to));
}

const key = 'shop/cart:/TCP';
const rulesA = `${key} ${lbA}:80`;

test.each<[string, Specs, readonly string[]]>([
  ['a service without source ranges: nothing', open, []],
  ['a service with source ranges: its load-balancer IPs', ranged, [rulesA]],
  ['an SCTP service: all of it', sctp, ['shop/cart:/SCTP 10.96.0.10:80']],
])('rules carry of %s', (_, specs, expected) => {
  expect(texts(wholeRules(situation(specs)).table.services.values())).toEqual(expected);
});

test.each<[string, Specs, Specs, unknown, unknown]>([
  ['nothing to carry', none, open, 'nothing', { has: [], upserted: [], removed: [] }],
  [
    'a new service with source ranges comes after the maps, because neither carries it so far',
    none,
    ranged,
    'nothing',
    { has: [rulesA], upserted: [rulesA], removed: [] },
  ],
  [
    'a service that gets source ranges is in the rules before programs let it pass',
    open,
    ranged,
    { has: [rulesA], upserted: [rulesA], removed: [] },
    { has: [rulesA], upserted: [rulesA], removed: [] },
  ],
  [
    'a service that loses its source ranges stays in the rules until programs carry it',
    ranged,
    open,
    'nothing',
    { has: [], upserted: [], removed: [key] },
  ],
  [
    'one frontend more in the rules that no program had comes after the maps',
    ranged,
    rangedTwo,
    'nothing',
    { has: [`${rulesA} ${lbB}:80`], upserted: [`${rulesA} ${lbB}:80`], removed: [] },
  ],
  [
    'a deleted service leaves the rules after the maps',
    sctp,
    none,
    'nothing',
    { has: [], upserted: [], removed: ['shop/cart:/SCTP'] },
  ],
])('%s', (_, from, to, before, after) => {
  const planned = plan(situation(from), situation(to));
  expect([stepText(planned.before), stepText(planned.after)]).toEqual([before, after]);
});

test('what comes new to a service that moves waits: another one may have had it', () => {
  const [from, to] = [situation(open), situation(rangedTwo)];
  expect(stepText(plan(from, to).before)).toEqual({ has: [rulesA], upserted: [rulesA], removed: [] });
});

test('settings go to the rules with the last step alone', () => {
  const [from, to] = [situation(open), situation(ranged, { serviceCidrs: ['10.96.0.0/12'] })];
  const { before, after } = plan(from, to);
  expect([before?.delta.settingsChanged, before?.table.serviceCidrs]).toEqual([false, []]);
  expect([after.delta.settingsChanged, after.table.serviceCidrs]).toEqual([true, ['10.96.0.0/12']]);
});
