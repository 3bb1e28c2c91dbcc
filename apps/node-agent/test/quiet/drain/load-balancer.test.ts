import { writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../../privileged/agent-log.ts';
import { openLoad } from '../../privileged/open-load.ts';
import { type DrainSite, openDrainSite } from './drain-site.ts';

// A real HAProxy with the health checks of the article, ten times as fast, in front of a Service with externalTrafficPolicy Local.

const { signal } = new AbortController();
const frontend = 8000;

function haproxyConfig({ nodes, nodePort, healthCheckNodePort }: DrainSite): string {
  const servers = nodes.map(
    ({ name, addresses: { IPv4 } }) =>
      `  server ${name} ${IPv4}:${nodePort} check port ${healthCheckNodePort} inter 500 fall 3 rise 1`,
  );
  return [
    'defaults',
    '  mode tcp',
    '  timeout connect 5s',
    '  timeout client 30s',
    '  timeout server 30s',
    'listen app',
    `  bind :${frontend}`,
    '  option httpchk GET /healthz',
    ...servers,
    '',
  ].join('\n');
}

test('a pod ends only when the load balancer has left its node', async () => {
  await using site = await openDrainSite(
    { proxyMode: 'nftables', policy: 'Local', replicas: 1, isAlone: true },
    signal,
  );
  const { client } = site.cluster.lab;
  const marker = client.spawn('true', [], { logName: 'marker' });
  const file = join(dirname(marker.logFile), 'haproxy.cfg');
  await writeFile(file, haproxyConfig(site));
  client.spawn('haproxy', ['-db', '-f', file], { logName: 'haproxy' });
  const request = {
    protocol: 'http',
    address: client.addresses.IPv4 ?? '',
    port: frontend,
    path: '/',
    timeout: 2000,
  } as const;
  await until(async () => (await site.outside.probe(request)).status === 'answered');
  await new Promise((resolve) => setTimeout(resolve, 2000)); // all checks have run
  const load = await openLoad([{ name: 'load balancer', from: site.outside, request }], 20, async () => {
    for (let round = 0; round < 2; round++) await site.restart();
  });
  expect(load.lost).toEqual([]);
  expect(load.count).toBeGreaterThan(100);
  const waits = (await site.gateLog()).map((line) =>
    Number(/"safe to stop".* waitedMs=(\d+) nodes=3 TCP=0/.exec(line)?.[1]),
  );
  expect(waits).toHaveLength(2);
  // Three failing checks take 1.0 to 1.5 s.
  for (const wait of waits) expect(wait).toBeGreaterThan(1000);
  for (const wait of waits) expect(wait).toBeLessThan(3000);
});
