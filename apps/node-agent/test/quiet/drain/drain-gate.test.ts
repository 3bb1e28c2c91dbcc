import { setTimeout as sleep } from 'node:timers/promises';
import { apiResources } from '@switchyard/core/kubernetes';
import { agentModes, type LabPod, type Prober, type ProbeSocket, startEchoServer } from '@switchyard/lab';
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
    for (const line of said) expect(line).toMatch(/"safe to stop".* nodes=3 TCP=0/);
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

  test('a UDP flow in use is counted, and keeps the gate closed if asked to', async () => {
    const { cluster, nodes, outside, gate } = site;
    const { lab, api } = cluster;
    const old = await lab.addPod(nodes[1], 'old');
    const successor = await lab.addPod(nodes[2], 'new');
    for (const pod of [old, successor]) startEchoServer(pod, { pod: pod.name, tcp: [9090], udp: [9090] });
    const named = { name: 'dual', namespace: 'default' };
    const ports = (['TCP', 'UDP'] as const).map((protocol) => ({ name: protocol.toLowerCase(), protocol }));
    const servicePorts = ports.map((port) => ({ ...port, port: 80 }));
    const made = await api.create(
      apiResources.services,
      { metadata: named, spec: { type: 'NodePort', ports: servicePorts } },
      signal,
    );
    const endpointOf = ({ addresses }: LabPod, isEnding: boolean) => ({
      addresses: [addresses.IPv4 ?? ''],
      nodeName: nodes[addresses === old.addresses ? 1 : 2].nodeName,
      conditions: { ready: !isEnding, serving: true, terminating: isEnding },
    });
    const slice = {
      metadata: { ...named, labels: { 'kubernetes.io/service-name': 'dual' } },
      addressType: 'IPv4',
      ports: ports.map((port) => ({ ...port, port: 9090 })),
      endpoints: [endpointOf(old, false), endpointOf(successor, false)],
    };
    await api.create(apiResources.endpointSlices, slice, signal);
    const portOf = (protocol: string): number =>
      made.spec?.ports?.find((port) => port.protocol === protocol)?.nodePort ?? 0;
    const address = nodes[0].addresses.IPv4 ?? '';
    const socket = await flowTo('old', { prober: outside, address, port: portOf('UDP') });
    const endpoints = [endpointOf(old, true), endpointOf(successor, false)];
    await api.patch(apiResources.endpointSlices, named, { kind: 'merge', body: { endpoints } }, signal);
    const drain = async (query: string): Promise<string> =>
      (await nodes[0].run('curl', ['-s', `http://${gate}/drain?pod=${old.addresses.IPv4}&${query}`])).stdout;
    await using asking = keepAsking(socket);
    // Attempts before this flow are in use for up to three seconds.
    const counted = expect.poll(() => drain('seconds=5'), { interval: 500 });
    await counted.toMatch(/^safe to stop .* 0 TCP connections, 1 UDP flows\n$/);
    expect(await drain('seconds=2&connections=wait-udp')).toMatch(/^not safe to stop .*\n {2}1 UDP flows are open\n$/s);
    await asking[Symbol.asyncDispose]();
    expect(await drain('seconds=10&connections=wait-udp')).toMatch(
      /^safe to stop .* 0 TCP connections, 0 UDP flows\n$/,
    );
    await socket.close();
  });
});

/** A socket whose flow goes to this pod. */
async function flowTo(
  name: string,
  { prober, address, port }: { readonly prober: Prober; readonly address: string; readonly port: number },
): Promise<ProbeSocket> {
  for (let round = 0; round < 100; round++) {
    const socket = await prober.connectUdp({ protocol: 'udp', address, port });
    const answer = await socket.ask(500);
    if (answer.status === 'answered' && answer.by === name) return socket;
    await socket.close();
  }
  throw new Error(`no flow to ${name} after 100 attempts`);
}

/** Sends and receives all the time; each must be answered. */
function keepAsking(socket: ProbeSocket): AsyncDisposable {
  const stop = new AbortController();
  const asking = (async () => {
    while (!stop.signal.aborted) {
      expect(await socket.ask(1000)).toMatchObject({ status: 'answered', by: 'old' });
      await sleep(200);
    }
  })();
  return {
    [Symbol.asyncDispose]: () => {
      stop.abort();
      return asking;
    },
  };
}
