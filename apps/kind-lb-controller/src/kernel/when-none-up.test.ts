import { parseIp } from '@switchyard/core';
import { expect, test } from 'vitest';
import { healthProfile } from '../health-profile/health-profiles.ts';
import { proxiedTable } from './proxied-table.ts';
import { transparentPorts } from './transparent/transparent-port.ts';
import type { HealthProfile } from '../spec/health-profile.ts';
import type { LoadBalancerSpec } from '../spec/load-balancer-spec.ts';
import { exampleSpec, lastUpProfile, nodeTargets, portSpec } from '../testing/example-specs.ts';
import { targetHealth } from '../haproxy/haproxy-health.ts';
import { backendsOf } from '../haproxy/haproxy-servers.ts';

/** HAProxy's answer while these servers are UP, as `node1`, or `node1:last` in a second backend; unchecked ones always are. */
function dumpOf(spec: LoadBalancerSpec, up: readonly string[]): string {
  const lines = backendsOf(spec).flatMap(({ name, isLast, servers }) =>
    servers.map((server) => {
      const isUp = !server.isChecked || up.includes(isLast ? `${server.name}:last` : server.name);
      return `3 ${name} 1 ${server.name} ${server.address} ${isUp ? 2 : 0} 0 1 1 3 8 2 0 6 0 0 0 - 30080 - 0 32080 - - -`;
    }),
  );
  return `1\n${lines.join('\n')}\n`;
}

const closing = healthProfile('azure-lb');
const open = healthProfile('aws-nlb');
const udp = portSpec(53, nodeTargets(30053), 'UDP');

test.each<[what: string, profile: HealthProfile, up: readonly string[], used: string]>([
  ['who is UP', open, ['node2'], 'node2'],
  ['all while none is UP, where the profile fails open', open, [], 'node1 node2'],
  ['none while none is UP, where the profile closes', closing, [], ''],
  ['who was UP a moment ago, where the profile says so', lastUpProfile, ['node1:last'], 'node1'],
  [
    'only those that are UP, not those that were a moment ago',
    lastUpProfile,
    ['node2', 'node1:last', 'node2:last'],
    'node2',
  ],
])('the kernel uses %s, on both of its paths', (_, profile, up, used) => {
  const addresses = (list: readonly { readonly address: string }[]): string => list.map((one) => one.address).join(' ');
  const wanted = addresses(
    used.split(' ').flatMap((name) => nodeTargets(30053).filter((target) => target.name === name)),
  );

  const proxied = exampleSpec('dns', { ports: [udp], profile });
  const health = targetHealth([proxied], dumpOf(proxied, up));
  const table = proxiedTable({ specs: [proxied], health, ownAddresses: [] }, 'IPv4');
  const endpoints = [...table.services.values()].flatMap((service) => service.endpoints.Cluster);
  expect(addresses(endpoints)).toBe(wanted);

  const direct = exampleSpec('dns', { ports: [udp], profile, path: 'transparent' });
  const request = { specs: [direct], health: targetHealth([direct], dumpOf(direct, up)) };
  const [port] = transparentPorts(request);
  expect(port?.forNew.join(' ')).toBe(wanted);
  expect(port?.forOld).toEqual(port?.forNew);
  expect(port?.address).toBe(parseIp('172.18.255.1'));
});

test('where none is UP and all would be used, a node that drains is still left out', () => {
  const draining = portSpec(53, nodeTargets(30053, { draining: 'node1' }), 'UDP');
  const spec = exampleSpec('dns', { ports: [draining], profile: open, path: 'transparent' });
  const forNew = (up: readonly string[]): readonly string[] | undefined =>
    transparentPorts({ specs: [spec], health: targetHealth([spec], dumpOf(spec, up)) })[0]?.forNew;
  expect(forNew(['node1', 'node2'])).toEqual(['172.18.0.12']);
  expect(forNew(['node1'])).toEqual(['172.18.0.11']);
  expect(forNew([])).toEqual(['172.18.0.12']);
});
