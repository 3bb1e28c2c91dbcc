import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ipFamilies } from '@switchyard/core';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  type AgentMode,
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  startCluster,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { type LogLine, readLog, until } from './agent-log.ts';
import { program } from './with-rights.ts';

// The mode changes under a DaemonSet that stays: kubelet starts the agent's container again, and no other. The node has no bpffs at first,
// as without systemd. Each container is process 1 of its own, with the mounts and rights of deploy/kustomize/overlays/ebpf.

const { signal } = new AbortController();
const nodePort = 30080;
const stack = new AsyncDisposableStack();
const running: LabProcess[] = [];
let cluster: LabCluster;
let node: LabNode;
let client: Prober;
/** Holds the node's mount namespace. */
let mounts: LabProcess;
let nodes = 0;
let config: string;

beforeAll(async () => {
  cluster = stack.use(await startCluster({ name: 'inplace', nodes: 1, ipFamilies }, signal));
  [node] = cluster.lab.nodes as [LabNode];
  client = stack.use(await createProber(cluster.lab.client, signal));
  const pod = await cluster.lab.addPod(node, 'echo');
  startEchoServer(pod, { pod: 'echo', tcp: [8080] });
  config = join(cluster.lab.folder, 'config.conf');
  const spec = { type: 'NodePort' as const, ports: [{ port: 80, nodePort, protocol: 'TCP' as const }] };
  await cluster.api.create(apiResources.services, { metadata: { name: 'echo', namespace: 'default' }, spec }, signal);
  const slice = {
    metadata: { name: 'echo', namespace: 'default', labels: { 'kubernetes.io/service-name': 'echo' } },
    addressType: 'IPv4' as const,
    ports: [{ port: 8080, protocol: 'TCP' as const }],
    endpoints: [{ addresses: [pod.addresses.IPv4 ?? ''], nodeName: node.nodeName, conditions: { ready: true } }],
  };
  await cluster.api.create(apiResources.endpointSlices, slice, signal);
});

beforeEach(async () => {
  mounts = await startMounts();
});

afterEach(async () => {
  for (const process of running.splice(0).toReversed()) await process.stop();
});

afterAll(() => stack.disposeAsync());

const hostBpf = (): string => join(cluster.lab.folder, `sys-fs-bpf-${nodes}`);
const containerBpf = (): string => join(cluster.lab.folder, `run-bpf-${nodes}`);

/** A node: its /sys/fs/bpf is a shared mount, as all mounts of systemd are, and no bpffs. */
async function startMounts(): Promise<LabProcess> {
  nodes++;
  await mkdir(hostBpf());
  await mkdir(containerBpf());
  const ready = join(cluster.lab.folder, `mounts-${nodes}`);
  const script = `mount --bind ${hostBpf()} ${hostBpf()}; mount --make-shared ${hostBpf()}; touch ${ready}; exec sleep infinity`;
  const process = node.spawn('unshare', ['--mount', '--propagation=private', 'sh', '-euc', script]);
  running.push(process);
  await until(async () => (await readFile(ready).catch(() => undefined)) !== undefined);
  return process;
}

async function writeMode(mode: AgentMode, comment = ''): Promise<void> {
  await writeFile(
    config,
    `# ${comment}
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: ${mode}
clientConnection: { kubeconfig: ${cluster.lab.folder}/kubeconfig-inside }
clusterCIDR: 10.244.0.0/16,fd00:10:244::/56
conntrack: { maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s }
oomScoreAdj: 0
`,
  );
}

/** `set-up`: the privileged init container, whose mounts reach the node. `agent`: the container that is started again. */
function startContainer(which: 'set-up' | 'agent'): LabProcess {
  const rights = '-all,+net_admin,+sys_admin';
  const agent = `setpriv --bounding-set=${rights} --inh-caps=${rights} --no-new-privs -- "$0" "$@"`;
  const own = which === 'set-up' ? 'exec "$0" "$@" --init-only' : `mount --make-slave ${containerBpf()}; exec ${agent}`;
  const script = `mount --bind ${hostBpf()} ${containerBpf()}; ${own}`;
  const args = [
    `--config=${config}`,
    `--hostname-override=${node.nodeName}`,
    '--logging-format=json',
    `--switchyard-ebpf-cgroup=${node.cgroupPath}`,
    `--switchyard-ebpf-bpffs=${containerBpf()}`,
  ];
  const container = [
    'unshare',
    '--mount',
    '--propagation=unchanged',
    '--pid',
    '--fork',
    '--kill-child',
    '--mount-proc',
  ];
  const enter = [`--mount=/proc/${mounts.pid}/ns/mnt`, ...container, 'sh', '-euc', script, program, ...args];
  const process = node.spawn('nsenter', enter, { logName: which });
  running.push(process);
  return process;
}

async function setUp(): Promise<void> {
  const process = startContainer('set-up');
  expect([await process.ended, wrong(await readLog(process))]).toEqual([0, []]);
}

const wrong = (log: readonly LogLine[]): readonly LogLine[] => log.filter(({ level }) => !/info|debug/.test(level));

/** Resolves when the agent serves in this mode, and its other modes left nothing. */
async function serves(agent: LabProcess, mode: AgentMode, isFirst = false): Promise<void> {
  await until(async () => {
    const log = await readLog(agent);
    expect(wrong(log)).toEqual([]);
    const isDone = isFirst || log.some(({ msg }) => msg === 'removed what our other mode left');
    return isDone && log.some(({ msg, mode: of }) => msg === 'starting' && of === mode);
  });
  await until(async () => (await ask('10256', '/healthz')) === 200);
  expect(await call()).toMatchObject({ status: 'answered', by: 'echo' });
}

async function ask(port: string, path: string): Promise<number | undefined> {
  const probe = { protocol: 'http', address: node.addresses.IPv4 ?? '', port: Number(port), path } as const;
  const answer = await client.probe(probe);
  return answer.status === 'answered' ? answer.httpStatus : undefined;
}

const call = () => client.probe({ protocol: 'tcp', address: node.addresses.IPv4 ?? '', port: nodePort });

test('in all six directions the agent alone is started again, once, though the set-up ran in the first mode only', async () => {
  await writeMode('nftables');
  await setUp();
  let agent = startContainer('agent');
  await serves(agent, 'nftables', true);
  for (const mode of ['ebpf', 'iptables', 'ebpf', 'nftables', 'iptables', 'nftables'] as const) {
    await writeMode(mode);
    expect(await agent.ended).toBe(1);
    expect((await readLog(agent)).at(-1)?.msg).toMatch(/ending for a restart, since .* changed a setting/);
    agent = startContainer('agent');
    await serves(agent, mode);
  }
});

test('where no set-up has mounted bpffs the agent stays in its mode, says so, and changes when the node has one', async () => {
  await writeMode('nftables');
  const agent = startContainer('agent');
  await serves(agent, 'nftables', true);
  await writeMode('ebpf');
  await until(async () => wrong(await readLog(agent)).length > 0);
  expect(wrong(await readLog(agent))).toEqual([
    expect.objectContaining({
      level: 'error',
      msg: 'this node cannot run the changed configuration, the old one stays in force',
      settings: ['mode: "nftables" -> "ebpf"'],
    }),
  ]);
  expect(JSON.stringify(await readLog(agent))).toContain('no bpffs is at');
  const events = async (): Promise<readonly unknown[]> =>
    (await cluster.api.list(apiResources.events, {}, signal)).items.filter(
      ({ reason }) => reason === 'FailedToChangeMode',
    );
  await until(async () => (await events()).length === 1);
  expect([agent.child.exitCode, await ask('10256', '/healthz'), (await call()).status]).toEqual([
    null,
    200,
    'answered',
  ]);
  const mount = ['mount', '-t', 'bpf', 'bpf', hostBpf()];
  expect(await node.run('nsenter', [`--mount=/proc/${mounts.pid}/ns/mnt`, ...mount])).toMatchObject({ exitCode: 0 });
  await writeMode('ebpf', 'looked at again at once');
  expect(await agent.ended).toBe(1);
  await serves(startContainer('agent'), 'ebpf');
});
