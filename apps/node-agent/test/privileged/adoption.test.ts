import { type IpFamily, ipFamilies, millis, systemClock } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type LabCluster,
  type LabNode,
  type LabPod,
  type LabProcess,
  type Prober,
  type ProbeResult,
  startCluster,
  startEchoServer,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';

const { signal } = new AbortController();
let cluster: LabCluster;
let node: LabNode;
let pod: LabPod;
let client: Prober;
let agent: LabProcess;
const nodePorts = { tcp: 30080, udp: 30081 };

beforeAll(async () => {
  cluster = await startCluster({ name: 'adopt', nodes: 1, ipFamilies }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  pod = await cluster.lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'echo', tcp: [8080], udp: [8080] });
  client = await createProber(cluster.lab.client, signal);
  const ports = [
    { name: 'tcp', port: 80, nodePort: nodePorts.tcp, protocol: 'TCP' as const },
    { name: 'udp', port: 80, nodePort: nodePorts.udp, protocol: 'UDP' as const },
  ];
  const spec = { type: 'NodePort' as const, ipFamilyPolicy: 'PreferDualStack' as const, ports };
  await cluster.api.create(apiResources.services, { metadata: { name: 'echo', namespace: 'default' }, spec }, signal);
  for (const family of ipFamilies) await expose(family);
  agent = cluster.startAgent(node);
  await waitForAgents(cluster.lab, [agent], signal);
  for (const family of ipFamilies) await until(async () => (await connect('tcp', family)).status === 'answered');
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

/** Makes the pod the Service's endpoint in one family. */
async function expose(family: IpFamily): Promise<void> {
  const slice = {
    metadata: {
      name: `echo-${family.toLowerCase()}`,
      namespace: 'default',
      labels: { 'kubernetes.io/service-name': 'echo' },
    },
    addressType: family,
    ports: [
      { name: 'tcp', port: 8080, protocol: 'TCP' as const },
      { name: 'udp', port: 8080, protocol: 'UDP' as const },
    ],
    endpoints: [{ addresses: [pod.addresses[family]!], nodeName: node.nodeName, conditions: { ready: true } }],
  };
  await cluster.api.create(apiResources.endpointSlices, slice, signal);
}

function connect(protocol: 'tcp' | 'udp', family: IpFamily): Promise<ProbeResult> {
  return client.probe({ protocol, address: node.addresses[family] ?? '', port: nodePorts[protocol] });
}

/** Connections that failed while `action` ran: both protocols, both families, one after another each. */
async function failedDuring(action: () => Promise<void>): Promise<readonly ProbeResult[]> {
  const failed: ProbeResult[] = [];
  let count = 0;
  const done = new AbortController();
  const repeat = async (protocol: 'tcp' | 'udp', family: IpFamily): Promise<void> => {
    while (!done.signal.aborted) {
      const result = await connect(protocol, family);
      count++;
      if (result.status !== 'answered') failed.push(result);
      await systemClock.sleep(millis(2), signal);
    }
  };
  const all = Promise.all(
    ipFamilies.flatMap((family) => (['tcp', 'udp'] as const).map((protocol) => repeat(protocol, family))),
  );
  await action().finally(() => done.abort());
  await all;
  expect(count).toBeGreaterThan(500);
  return failed;
}

test('an agent killed and started again three times fails no connection, TCP or UDP, IPv4 or IPv6, and writes nothing', async () => {
  const failed = await failedDuring(async () => {
    for (let round = 0; round < 3; round++) {
      process.kill(agent.pid, 'SIGKILL');
      await agent.ended;
      agent = cluster.startAgent(node);
      await waitForAgents(cluster.lab, [agent], signal);
      const applied = (await readLog(agent)).filter(({ msg }) => msg === 'applied');
      expect(new Set(applied.map(({ ipFamily }) => ipFamily))).toEqual(new Set(ipFamilies));
      expect(applied.map(({ writes }) => writes)).toEqual(applied.map(() => 0));
    }
  });
  expect(failed).toEqual([]);
});

test('an agent heals a flushed ruleset, and says who flushed it', async () => {
  await node.run('nft', ['flush', 'ruleset'], {});
  for (const family of ipFamilies) {
    await until(async () =>
      (await readLog(agent)).some((line) => line.msg === 'drift healed' && line['ipFamily'] === family),
    );
    expect((await connect('tcp', family)).status).toBe('answered');
  }
  const healed = (await readLog(agent)).filter(({ msg }) => msg === 'drift: another process changed the rules');
  expect(healed).toHaveLength(2);
  for (const line of healed) expect(line).toMatchObject({ level: 'warn', kind: 'table', process: { name: 'nft' } });
});
