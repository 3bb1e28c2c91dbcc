import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ipFamilies } from '@switchyard/core';
import {
  type AgentMode,
  agentModes,
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  proxyModeFlags,
  startCluster,
  waitForAgents,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { withMode } from '../../src/config/testing/corpus.ts';
import { kubeadmFileOf } from '../../src/config/testing/kubeadm-file.ts';
import { readLog } from './agent-log.ts';
import { addEchoService } from './echo-service.ts';
import { askInside } from './http-client.ts';
import { program } from './with-rights.ts';

// The agent as shipped starts with the files of kubeadm 1.26, 1.36, 1.37 and 1.38, as they are and in each mode, and forwards.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const nodePort = 30080;
let cluster: LabCluster;
let node: LabNode;
let client: Prober;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'corpus', nodes: 1, ipFamilies }, signal));
  [node] = cluster.lab.nodes as [LabNode];
  await addEchoService(cluster, { node, nodePort }, signal);
  client = stack.use(await createProber(cluster.lab.client, signal));
});

afterAll(() => stack.disposeAsync());

/** kubeadm's file for the lab: its API server, both families, and settings that are the machine's left alone. */
function fileFor(minor: number): string {
  const changes = {
    '/var/lib/kube-proxy/kubeconfig.conf': cluster.insideKubeconfig,
    '10.244.0.0/16': '10.244.0.0/16,fd00:10:244::/56',
    'maxPerCore: null': 'maxPerCore: 0',
    'oomScoreAdj: null': 'oomScoreAdj: 0',
  };
  let text = kubeadmFileOf(minor);
  for (const [old, now] of Object.entries(changes)) {
    expect(text).toContain(old);
    text = text.replace(old, now);
  }
  return text;
}

async function start(name: string, text: string, mode: AgentMode): Promise<LabProcess> {
  const file = join(cluster.lab.folder, `${name}.conf`);
  await writeFile(file, text);
  const places = proxyModeFlags(node, mode).filter((flag) => !flag.startsWith('--proxy-mode'));
  const args = [`--config=${file}`, `--hostname-override=${node.nodeName}`, '--logging-format=json', ...places];
  const agent = node.spawn(program, args, { logName: name });
  await waitForAgents(cluster.lab, [agent], signal);
  return agent;
}

async function expectForwarding(mode: AgentMode): Promise<void> {
  expect((await askInside(node, '/proxyMode')).body).toBe(mode);
  for (const family of ipFamilies) {
    const request = { protocol: 'tcp', address: node.addresses[family] ?? '', port: nodePort } as const;
    expect(await client.probe(request)).toMatchObject({ by: 'echo' });
  }
}

async function warningsOf(agent: LabProcess): Promise<readonly string[]> {
  return (await readLog(agent)).filter(({ level }) => level !== 'info').map(({ msg }) => msg);
}

const minors = [26, 36, 37, 38];

describe.each(minors)("kubeadm 1.%d's file", (minor) => {
  test('starts as it is, in the iptables mode', async () => {
    const agent = await start(`kubeadm-${minor}`, fileFor(minor), 'iptables');
    await expectForwarding('iptables');
    expect(await warningsOf(agent)).toEqual(minor < 37 ? ['Using iptables proxy'] : []);
    await agent.stop();
    expect(await agent.ended).toBe(0);
  });

  test.each(agentModes)('starts with mode %s', async (mode) => {
    const agent = await start(`kubeadm-${minor}-${mode}`, withMode(fileFor(minor), mode), mode);
    await expectForwarding(mode);
    expect(await warningsOf(agent)).toEqual([]);
    await agent.stop();
    expect(await agent.ended).toBe(0);
  });
});

test('gates of 1.37 start, and those without effect are one line per reason', async () => {
  const gates = ['KubeProxyIPVS', 'NFTablesNetlink', 'NativeHistograms'];
  const text = `${withMode(fileFor(38), 'nftables')}featureGates: { ${gates.map((name) => `${name}: true`).join(', ')} }\n`;
  const agent = await start('gates', text, 'nftables');
  await expectForwarding('nftables');
  expect(await warningsOf(agent)).toEqual([]);
  const told = (await readLog(agent)).filter(({ msg }) => msg === 'feature gates have no effect');
  expect(told.map((line) => line['gates'])).toEqual(gates.map((name) => [name]));
  await agent.stop();
  expect(await agent.ended).toBe(0);
});
