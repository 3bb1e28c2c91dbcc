import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type AgentOptions,
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  startCluster,
  waitForAgents,
} from '@switchyard/lab';
import { deleteTable, listTables } from '@switchyard/netfilter';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readLog, until } from './agent-log.ts';
import { addEchoService } from './echo-service.ts';
import { countParts, foreignTables, makeForeignTables, makeKubeProxyTables } from './foreign-tables.ts';
import { program } from './with-rights.ts';

// Beside tables on which some versions of the program nft crash, every mode starts, changes, heals, dumps and cleans up. No mode runs
// nft: it does so with one that crashes in PATH, and with none.

/** The program that PATH has under this name. */
type Nft = 'crashing' | 'missing';

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
const nodePort = 30080;
let cluster: LabCluster;
let node: LabNode;
let client: Prober;
let netns: string;
/** Programs that become the agent: on a machine whose nft crashes, or that has none. */
let programs: Readonly<Record<Nft, string>>;
let calls: string;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'foreign', nodes: 1, ipFamilies }, signal));
  [node] = cluster.lab.nodes as [LabNode];
  netns = `/run/netns/${node.namespace}`;
  await addEchoService(cluster, { node, nodePort }, signal);
  client = stack.use(await createProber(cluster.lab.client, signal));
  const folder = `${cluster.lab.folder}/crashing`;
  await cluster.lab.client.run('mkdir', ['-p', folder]);
  calls = `${cluster.lab.folder}/nft-calls`;
  await writeFile(`${folder}/nft`, `#!/bin/sh\necho "$@" >> ${calls}\nkill -SEGV $$\n`, { mode: 0o755 });
  programs = {
    crashing: await agentWithPath('crashing-nft', `${folder}:$PATH`),
    missing: await agentWithPath('missing-nft', await programsExceptNft()),
  };
  stack.use(makeForeignTables(netns));
});

afterAll(() => stack.disposeAsync());

/** Writes a program that becomes the agent with another PATH; resolves with its path. */
async function agentWithPath(name: string, path: string): Promise<string> {
  const file = `${cluster.lab.folder}/${name}`;
  await writeFile(file, `#!/bin/sh\nPATH=${path} exec ${program} "$@"\n`, { mode: 0o755 });
  return file;
}

/** Makes a folder with links to every program in PATH but nft; resolves with its path. */
async function programsExceptNft(): Promise<string> {
  const folder = `${cluster.lab.folder}/programs`;
  await mkdir(folder);
  const linked = new Set(['nft']);
  for (const place of (process.env['PATH'] ?? '').split(':')) {
    for (const name of await readdir(place).catch(() => [])) {
      if (linked.has(name)) continue;
      linked.add(name);
      await symlink(`${place}/${name}`, `${folder}/${name}`);
    }
  }
  return folder;
}

type Mode = 'nftables' | 'ebpf' | 'iptables';

function flagsOf(mode: Mode): readonly string[] {
  const bpffs = `--switchyard-ebpf-bpffs=${node.bpffsPath}`;
  return mode === 'iptables' ? [bpffs, '--switchyard-iptables-variant=nft'] : [bpffs];
}

function start(mode: Mode, nft: Nft): LabProcess {
  const options: AgentOptions = { proxyMode: mode, program: programs[nft], args: flagsOf(mode) };
  return cluster.startAgent(node, options);
}

async function serves(port: number = nodePort): Promise<void> {
  for (const family of ipFamilies) {
    const request = { protocol: 'tcp', address: node.addresses[family] ?? '', port } as const;
    await until(async () => (await client.probe(request)).status === 'answered');
  }
}

/** Another NodePort of the Service. */
async function changePort(port: number): Promise<void> {
  const place = { name: 'cart', namespace: 'default' };
  const spec = { ports: [{ name: 'http', port: 80, nodePort: port, protocol: 'TCP' as const }] };
  await cluster.api.patch(apiResources.services, place, { kind: 'merge', body: { spec } }, signal);
}

/** Damage to the rules of a mode by another process. */
const damages: Readonly<Record<Mode, () => Promise<void>>> = {
  nftables: async () => {
    for (const table of ['switchyard', 'switchyard-2']) deleteTable({ family: 'inet', table, netns });
  },
  ebpf: async () => {
    expect(deleteTable({ family: 'inet', table: 'switchyard-ebpf-guard', netns })).toBe(true);
  },
  iptables: async () => {
    const result = await node.run('iptables-nft', ['-t', 'nat', '-F', 'KUBE-SERVICES']);
    expect(result.exitCode, result.stderr).toBe(0);
  },
};

const ours = (): readonly string[] => listTables('inet', netns).filter((name) => !foreignTables.includes(name));

test.each<[Mode, Nft]>([
  ['nftables', 'crashing'],
  ['ebpf', 'crashing'],
  ['iptables', 'crashing'],
  ['nftables', 'missing'],
  ['ebpf', 'missing'],
])(
  'the %s mode starts, changes, heals, starts again, dumps and cleans up with nft %s',
  async (mode, nft) => {
    await rm(calls, { force: true });
    const parts = countParts(netns);
    expect([...parts.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan(1000);
    const agent = start(mode, nft);
    await waitForAgents(cluster.lab, [agent], signal);
    await serves();
    await changePort(nodePort + 1);
    await serves(nodePort + 1);
    await changePort(nodePort);
    await serves();
    await damages[mode]();
    await until(async () => (await readLog(agent)).some(({ msg }) => msg === 'drift healed'));
    await serves();
    await agent.stop();

    const again = start(mode, nft);
    await waitForAgents(cluster.lab, [again], signal);
    await serves();
    const log = await readLog(again);
    expect(log.filter(({ level }) => level === 'warn' || level === 'error' || level === 'text')).toEqual([]);
    await again.stop();

    const dump = await node.run(programs[nft], ['--switchyard-dump', `--proxy-mode=${mode}`, ...flagsOf(mode)]);
    expect(dump.exitCode, dump.stderr).toBe(0);
    expect(dump.stdout).toContain(String(nodePort));

    const removed = await node.run(programs[nft], ['--cleanup', ...flagsOf(mode)]);
    expect(removed.exitCode, removed.stderr).toBe(0);
    expect(ours()).toEqual([]);
    expect(existsSync(calls) ? await readFile(calls, 'utf8') : '').toBe('');
    expect(listTables('inet', netns).toSorted()).toEqual([...foreignTables].toSorted());
    expect(countParts(netns)).toEqual(parts);
  },
  60_000,
);

test("kube-proxy's tables are removed by name beside them", async () => {
  makeKubeProxyTables(netns);
  const before = listTables('ip', netns);
  const result = await node.run(programs.crashing, [
    '--cleanup',
    '--switchyard-cleanup-kube-proxy',
    ...flagsOf('nftables'),
  ]);
  expect(result.exitCode, result.stderr).toBe(0);
  expect(result.stdout).toContain('nftables table ip6 kube-proxy');
  expect(listTables('ip', netns)).toEqual(before.filter((name) => name !== 'kube-proxy'));
  expect(existsSync(calls)).toBe(false);
});
