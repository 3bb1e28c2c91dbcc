import { ipFamilies } from '@switchyard/core';
import { expect, test } from 'vitest';
import { hostAddresses, podAddresses, renderNetwork, renderPod } from './network-plan.ts';
import { planHosts } from './namespace-lab.ts';

const plan = { lab: 'x', ipFamilies, hosts: planHosts(2) };

/** The part of a script that runs inside one namespace. */
function inside(script: string, namespace: string): string {
  const start = script.indexOf(`nsenter --net=/run/netns/${namespace} `);
  expect(start).toBeGreaterThanOrEqual(0);
  return script.slice(start, script.indexOf('\nNAMESPACE', start));
}

test('everything is named after the lab, and no line touches the machine itself', () => {
  const script = renderNetwork(plan);
  const outside = script.replaceAll(/nsenter [\s\S]*?\nNAMESPACE/g, '');
  expect(outside.trim().split('\n').filter(Boolean)).toEqual([
    "ip -batch - <<'BATCH'",
    ...['switch', 'client', 'lb', 'api', 'node1', 'node2'].map((name) => `netns add swy-x-${name}`),
    'BATCH',
  ]);
});

test.each([
  { host: 'client', routes: [] },
  {
    host: 'lb',
    routes: [
      '10.244.1.0/24 via 172.18.0.11',
      '10.244.2.0/24 via 172.18.0.12',
      'fd00:10:244:1::/64 via fd00:172:18::11',
      'fd00:10:244:2::/64 via fd00:172:18::12',
    ],
  },
  {
    host: 'node2',
    routes: [
      'default via 172.18.0.1',
      'default via fd00:172:18::1',
      '10.244.1.0/24 via 172.18.0.11',
      'blackhole 10.244.2.0/24',
      'fd00:10:244:1::/64 via fd00:172:18::11',
      'blackhole fd00:10:244:2::/64',
    ],
  },
])('$host has exactly the routes $routes besides the node network', ({ host, routes }) => {
  const lines = inside(renderNetwork(plan), `swy-x-${host}`).split('\n');
  expect(lines.filter((line) => line.startsWith('route add ')).map((line) => line.slice('route add '.length))).toEqual(
    routes,
  );
});

test.each(['node1', 'switch', 'client'])('%s limits ICMP errors as Linux does by default, as a real node', (host) => {
  const lines = inside(renderNetwork(plan), `swy-x-${host}`);
  expect(lines).toContain('echo 1000 > /proc/sys/net/ipv4/icmp_ratelimit');
  expect(lines).toContain('echo 50 > /proc/sys/net/ipv4/icmp_msgs_burst');
  expect(lines).toContain('echo 1000 > /proc/sys/net/ipv6/icmp/ratelimit');
});

test.each([
  { host: 'node1', forwards: true },
  { host: 'switch', forwards: true },
  { host: 'client', forwards: false },
])('$host forwards: $forwards', ({ host, forwards }) => {
  expect(inside(renderNetwork(plan), `swy-x-${host}`).includes('echo 1 > /proc/sys/net/ipv4/ip_forward')).toBe(
    forwards,
  );
});

test('forwarding is switched on before the settings that it would reset', () => {
  const text = inside(renderNetwork(plan), 'swy-x-node1');
  expect(text.indexOf('ip_forward')).toBeLessThan(text.indexOf('send_redirects'));
});

test.each([
  { family: 'IPv4' as const, other: /fd00|fe80/ },
  { family: 'IPv6' as const, other: /172\.18|10\.244/ },
])('a lab of $family only has no address of the other family, in hosts and pods', ({ family, other }) => {
  const families = [family];
  const network = renderNetwork({ ...plan, ipFamilies: families });
  const pod = renderPod({
    lab: 'x',
    name: 'p',
    ipFamilies: families,
    addresses: podAddresses(1, 2, families),
    node: { name: 'node1', addresses: hostAddresses(11, families) },
    number: 1,
  });
  expect(network + pod).not.toMatch(other);
  expect(network.includes('disable_ipv6')).toBe(family === 'IPv4');
});
