import { dataplaneNames } from '@switchyard/scenarios';
import { expect, test } from 'vitest';
import { catalogue } from '../cases/catalogue.ts';
import { claims } from './claims.ts';
import { leftovers, placeOf, profiles } from './profiles.ts';

const cases = dataplaneNames.flatMap((dataplane) => catalogue({ dataplane, cell: 'dual' }));

test('every case has a place, and every rule and claim decides one', () => {
  expect(cases.filter((one) => placeOf(one) === undefined).map(({ id }) => id)).toEqual([]);
  expect(leftovers(cases.map(({ id }) => id))).toEqual([]);
});

test('required cases rest on the API or a KEP, informative ones on nothing else than kube-proxy', () => {
  for (const one of cases) {
    const place = placeOf(one);
    const sources = new Set(place?.claims.map((name) => claims[name].from));
    if (place?.level === 'required') expect([...sources], one.id).toEqual(['api']);
    if (place?.level === 'informative') expect([...sources], one.id).toEqual(['kubeProxy']);
  }
});

test('both families of a case have the same place', () => {
  const byName = Map.groupBy(cases, ({ id }) => id.slice(0, id.lastIndexOf('/')));
  for (const [name, members] of byName) {
    const places = members.map((one) => placeOf(one));
    expect(new Set(places.map((place) => `${place?.profile} ${place?.level}`)).size, name).toBe(1);
  }
});

test('each profile has cases; Topology, Restart and Configuration require none', () => {
  const levels = Map.groupBy(cases, (one) => placeOf(one)?.profile);
  expect([...levels.keys()].toSorted()).toEqual(Object.keys(profiles).toSorted());
  const without = Object.keys(profiles).filter(
    (name) => !cases.some((one) => placeOf(one)?.profile === name && placeOf(one)?.level === 'required'),
  );
  expect(without).toEqual(['Topology', 'Restart', 'Configuration']);
});

test.each([
  ['matrix/nodePort/Local/ready-remote-only/ipv4', 'LoadBalancer', 'required'],
  ['matrix/nodePort/Local/terminating-both/ipv6', 'Terminating', 'required'],
  ['matrix/clusterIP/Cluster/stopped-beside-ready/ipv4', 'Terminating', 'required'],
  ['scenario/load-balancer-ip-mode/ipv4', 'LoadBalancer', 'required'],
  ['scenario/load-balancer-ip-mode-router/ipv4', 'LoadBalancer', 'informative'],
  ['rollout/deployment/Local/ipv4', 'ZeroLoss', 'required'],
  ['scenario/topology-zone/ipv4', 'Topology', 'extended'],
])('%s is of %s, %s', (id, profile, level) => {
  expect(placeOf({ id })).toMatchObject({ profile, level });
});

test('what pods and the node get from a NodePort with the policy Local is open', () => {
  const place = placeOf({ id: 'matrix/nodePort/Local/ready-remote-only/ipv4' });
  expect(['pod/tcp', 'node/udp', 'outside/tcp'].map((id) => place?.isInformative(id))).toEqual([true, true, false]);
});

test("a scenario of the user's own has no place", () => {
  expect(placeOf({ id: 'scenario/cart-drains/ipv4' })).toBeUndefined();
});
