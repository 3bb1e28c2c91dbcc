import { apiResources } from '@switchyard/core/kubernetes';
import { agentModes } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../../privileged/agent-log.ts';
import { openLoad } from '../../privileged/open-load.ts';
import { type DrainSite, hook, openDrainSite } from './drain-site.ts';

// Pods that stop at once after SIGTERM, and ask the gate before: rolling updates lose nothing without any sleep.

const { signal } = new AbortController();
const replicas = 3;

const proxies = [
  ...agentModes.map((proxyMode) => ({ name: proxyMode as string, proxyMode, isObserved: false })),
  // The rules of the iptables mode have the names of kube-proxy's, and are as late.
  { name: 'iptables, observed', proxyMode: 'iptables' as const, isObserved: true },
];

describe.each(proxies)('rolling updates behind a drain gate, $name', ({ proxyMode, isObserved }) => {
  let site: DrainSite;

  beforeAll(async () => {
    site = await openDrainSite({ proxyMode, policy: 'Cluster', replicas, isAlone: false, isObserved }, signal);
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  test('lose no request, from a pod and from outside', async () => {
    const { nodes, inside, outside, clusterIp, nodePort } = site;
    const ask = (address: string, port: number) =>
      ({ protocol: 'http', address, port, path: '/', timeout: 2000 }) as const;
    const lines = [
      { name: 'pod', from: inside, request: ask(clusterIp, 80) },
      { name: 'outside', from: outside, request: ask(nodes[0].addresses.IPv4 ?? '', nodePort) },
    ];
    for (const { from, request } of lines) await until(async () => (await from.probe(request)).status === 'answered');
    const load = await openLoad(lines, 20, async () => {
      for (let round = 0; round < 3; round++) await site.restart();
    });
    expect(load.lost).toEqual([]);
    expect(load.count).toBeGreaterThan(100);
    const said = await site.gateLog();
    expect(said).toHaveLength(3 * replicas);
    for (const line of said) expect(line).toMatch(/"safe to stop".* nodes=3 connections=0/);
  });

  test('the hook fails with the reasons for a pod that does not end, and for a gate that does not answer', async () => {
    const { cluster, caller, gate } = site;
    const named = { name: 'held', namespace: 'default' };
    await cluster.api.create(apiResources.services, { metadata: named, spec: { ports: [{ port: 80 }] } }, signal);
    const slice = {
      metadata: { ...named, labels: { 'kubernetes.io/service-name': 'held' } },
      addressType: 'IPv4',
      ports: [{ port: 8080, protocol: 'TCP' as const }],
      endpoints: [{ addresses: [caller.addresses.IPv4 ?? ''], conditions: { ready: true } }],
    };
    await cluster.api.create(apiResources.endpointSlices, slice, signal);
    const inPod = (...args: readonly string[]) => caller.run(hook, args);
    const closed = await inPod('--gate', gate, '--seconds', '1');
    expect(closed).toMatchObject({ exitCode: 1 });
    expect(closed.stdout).toMatch(/^not safe to stop 10\.244\..*its EndpointSlices offer it as ready/s);
    const silent = await inPod('--gate', '127.0.0.1:9', '--seconds', '1');
    expect(silent).toMatchObject({ exitCode: 1, stdout: '' });
    expect(silent.stderr).toContain('127.0.0.1:9 gives no answer: Connection refused');
    const wrong = await inPod('--seconds', '0');
    expect(wrong).toMatchObject({ exitCode: 1 });
    expect(wrong.stderr).toContain('usage: switchyard-drain-hook');
  });
});
