import { fileURLToPath } from 'node:url';
import type { Deployment } from '@switchyard/core/kubernetes';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  agentModes,
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  startCluster,
  waitForAgents,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readLog, until } from '../../privileged/agent-log.ts';
import { openLoad } from '../../privileged/open-load.ts';

// Pods that stop at once after SIGTERM, and ask the gate before: rolling updates lose nothing without any sleep.

const program = fileURLToPath(new URL('../../../bin/switchyard-agent', import.meta.url));
const hook = fileURLToPath(new URL('../../../../../packages/native/build/switchyard-drain-hook', import.meta.url));
const { signal } = new AbortController();
const replicas = 3;

describe.each(agentModes)('rolling updates behind a drain gate, %s', (proxyMode) => {
  let cluster: LabCluster;
  let gate: LabProcess;
  let outside: Prober;
  let inside: Prober;
  let caller: LabPod;
  let ports: { clusterIp: string; nodePort: number };
  let nodes: readonly LabNode[];
  const gateAddress = () => `${nodes[0]?.addresses.IPv4}:10247`;

  beforeAll(async () => {
    cluster = await startCluster({ name: `gate${proxyMode.slice(0, 3)}`, nodes: 3, ipFamilies: ['IPv4'] }, signal);
    nodes = cluster.lab.nodes;
    const agents = await cluster.startAgents({ proxyMode, args: ['--switchyard-drain-gate'] }, signal);
    await waitForAgents(cluster.lab, agents, signal);
    const [first] = nodes as [LabNode];
    gate = first.spawn(program, ['drain-gate', `--kubeconfig=${cluster.insideKubeconfig}`], { logName: 'gate' });
    await until(async () => (await first.run('curl', ['-sf', `http://${gateAddress()}/healthz`])).exitCode === 0);
    outside = await createProber(cluster.lab.client, signal);
    caller = await cluster.lab.addPod(first, 'caller');
    inside = await createProber(caller, signal);
    const { deployment, service } = zeroapp({
      replicas,
      delayShutdown: 0,
      externalTrafficPolicy: 'Cluster',
      maxSurge: 1,
      maxUnavailable: 0,
    });
    const made = await cluster.api.create(apiResources.services, service, signal);
    ports = { clusterIp: made.spec?.clusterIP ?? '', nodePort: made.spec?.ports?.[0]?.nodePort ?? 0 };
    await cluster.api.create(apiResources.deployments, gated(deployment), signal);
    await until(async () => (await readyPods()) === replicas);
  });
  afterAll(async () => {
    await outside?.[Symbol.asyncDispose]();
    await inside?.[Symbol.asyncDispose]();
    await cluster?.[Symbol.asyncDispose]();
  });

  /** With a hook instead of a sleep, without affinity, and restarted by each call. */
  function gated({ metadata, spec }: Deployment): Deployment {
    const template = spec?.template;
    const [container] = template?.spec?.containers ?? [];
    const command = [hook, '--gate', gateAddress()];
    const { affinity: _, ...rest } = template?.spec ?? {};
    const containers = [{ ...container, lifecycle: { preStop: { exec: { command } } } }];
    return { metadata, spec: { ...spec, template: { ...template, spec: { ...rest, containers } } } } as Deployment;
  }

  async function readyPods(): Promise<number> {
    const { items } = await cluster.api.list(apiResources.pods, {}, signal);
    return items.filter(({ status }) =>
      status?.conditions?.some((one) => one.type === 'Ready' && one.status === 'True'),
    ).length;
  }

  async function restart(): Promise<void> {
    const before = new Set(
      (await cluster.api.list(apiResources.pods, {}, signal)).items.map((pod) => pod.metadata.uid),
    );
    const annotations = { 'kubectl.kubernetes.io/restartedAt': new Date().toISOString() };
    const body = { spec: { template: { metadata: { annotations } } } };
    await cluster.api.patch(apiResources.deployments, { name: 'zeroapp' }, { kind: 'merge', body }, signal);
    await until(async () => {
      const { items } = await cluster.api.list(apiResources.pods, {}, signal);
      return (
        items.length === replicas &&
        items.every((pod) => !before.has(pod.metadata.uid)) &&
        (await readyPods()) === replicas
      );
    });
  }

  test('lose no request, from a pod and from outside', async () => {
    const [node] = nodes as [LabNode];
    const ask = (address: string, port: number) =>
      ({ protocol: 'http', address, port, path: '/', timeout: 2000 }) as const;
    const lines = [
      { name: 'pod', from: inside, request: ask(ports.clusterIp, 80) },
      { name: 'outside', from: outside, request: ask(node.addresses.IPv4 ?? '', ports.nodePort) },
    ];
    for (const { from, request } of lines) await until(async () => (await from.probe(request)).status === 'answered');
    const load = await openLoad(lines, 20, async () => {
      for (let round = 0; round < 3; round++) await restart();
    });
    expect(load.lost).toEqual([]);
    expect(load.count).toBeGreaterThan(100);
    const said = (await readLog(gate)).filter(({ msg }) => msg.includes('to stop'));
    expect(said).toHaveLength(3 * replicas);
    for (const { msg } of said) expect(msg).toMatch(/"safe to stop".* nodes=3 connections=0/);
  });

  test('the hook fails with the reasons for a pod that does not end, and for a gate that does not answer', async () => {
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
    const closed = await inPod('--gate', gateAddress(), '--seconds', '1');
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
