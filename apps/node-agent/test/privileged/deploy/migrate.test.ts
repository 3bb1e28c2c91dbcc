import { readFile } from 'node:fs/promises';
import type { LabProcess } from '@switchyard/lab';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../agent-log.ts';
import { startContainer } from './container.ts';
import { DaemonSetRunner, type RunningPod } from './daemon-set-runner.ts';
import { guideCommands } from './guide.ts';
import { oldChains, writeOldRules } from './old-kube-proxy.ts';
import { logOf, type OperatorBench, startOperatorBench } from './operator-bench.ts';
import type { Rendered } from './rendered.ts';

// Walks docs/operate/migrate.md: its own command lines, the real kubectl, the real agent with the command line
// of kubeadm's DaemonSet, while a pod calls a Service all the time. Played are kube-proxy (its rules, not the program),
// and the DaemonSet's controller.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
let bench: OperatorBench;
/** All that were started, the last one last. */
const agents: LabProcess[] = [];

beforeAll(async () => {
  bench = stack.use(await startOperatorBench('migrate', signal));
  await bench.operator(`kubectl create -f ${bench.kubeadmFile}`);
  stack.use(new DaemonSetRunner({ url: bench.cluster.url, name: 'kube-proxy', start: startPod }));
  await until(async () => (await bench.call()).status === 'answered');
});

afterAll(() => stack.disposeAsync());

/** kubelet: the container with the ConfigMap's files; kube-proxy's own image is replaced by its rules. */
async function startPod(spec: Rendered): Promise<RunningPod> {
  const { node, service } = bench;
  const [container] = spec.containers;
  if (container.image.startsWith('registry.k8s.io/kube-proxy:')) {
    await writeOldRules(node, service);
    return { ready: Promise.resolve(), stop: async () => undefined };
  }
  const started = await startContainer(node, { spec, container }, await bench.podFiles());
  agents.push(started);
  return { ready: readinessOf(container, started), stop: () => started.stop() };
}

/** As kubelet: by the probe, and without one as soon as the program runs, even if it ends. */
async function readinessOf({ readinessProbe: probe }: Rendered, { ended }: LabProcess): Promise<void> {
  if (probe === undefined) return;
  expect(probe.httpGet).toEqual(expect.objectContaining({ path: '/healthz', port: 10_256 }));
  const end = ended.then((status) => Promise.reject(new Error(`the container ended with ${status}`)));
  await Promise.race([until(async () => (await bench.health()) === 200), end]);
}

/** Logs of the agents, printed with failed calls. */
async function logs(): Promise<string> {
  return (await Promise.all(agents.map(logOf))).join('\n');
}

test('the swap in place: no call fails, kube-proxy’s rules go, the node answers as the guide says', async () => {
  const { node, operator } = bench;
  const [copy = '', edit = '', image = '', watch = ''] = await guideCommands('swap');
  expect(await oldChains(node)).toContain('KUBE-SERVICES');
  const { count, failures } = await bench.callsDuring(async () => {
    await operator(copy);
    expect(await operator(edit, `sed -i 's/mode: ""/mode: nftables/'`)).toMatch(/configmap\/kube-proxy edited/);
    expect(await operator(image)).toMatch(/daemonset.apps\/kube-proxy patched/);
    expect(await operator(watch)).toContain('daemon set "kube-proxy" successfully rolled out');
    await until(async () => (await oldChains(node)).length === 0);
  });
  expect(failures, await logs()).toEqual([]);
  expect(count).toBeGreaterThan(10);
  const [commands = ''] = await guideCommands('node');
  const seen = await node.run('sh', ['-euc', commands]);
  expect(seen).toMatchObject({ exitCode: 0 });
  expect(seen.stdout).toMatch(/^nftables/);
  expect(seen.stdout).toMatch(/"healthy": ?true/);
  expect(seen.stdout).toContain('table inet switchyard');
  expect(seen.stdout).not.toContain('kube-proxy');
});

test('the agent ran with the command line of the DaemonSet, and says what it removed', async () => {
  const [agent] = agents;
  const command = (await readFile(`/proc/${agent?.pid}/cmdline`, 'utf8')).split('\0').filter((part) => part !== '');
  expect(command.slice(-2)).toEqual([
    '--config=/var/lib/kube-proxy/config.conf',
    `--hostname-override=${bench.node.nodeName}`,
  ]);
  expect(await logs()).toMatch(/removed what kube-proxy left.*iptables-nft, table nat/);
});

test('/debug/explain answers the guide’s question', async () => {
  const [commands = ''] = await guideCommands('explain');
  const question = commands.replace('10.96.0.10:53/UDP', `${bench.service.clusterIp}:80`);
  expect(question).not.toBe(commands);
  const { stdout } = await bench.node.run('sh', ['-euc', question]);
  expect(stdout).toContain(bench.service.endpoint);
});

test('the roll-back: no call fails, and nothing of Switchyard stays', async () => {
  const { node, operator } = bench;
  const [undo = '', cleanUp = ''] = await guideCommands('back');
  const { count, failures } = await bench.callsDuring(async () => {
    const output = await operator(undo);
    expect(output).toContain('daemonset.apps/kube-proxy rolled back');
    expect(output).toContain('daemon set "kube-proxy" successfully rolled out');
    expect(await oldChains(node)).toContain('KUBE-SERVICES');
    expect(await bench.tables()).toContain('inet switchyard');
    await using _cleaner = new DaemonSetRunner({
      url: bench.cluster.url,
      name: 'switchyard-clean-up',
      start: startCleanUp,
    });
    expect(await operator(cleanUp)).toContain('daemonset.apps "switchyard-clean-up" deleted');
  });
  expect(failures, await logs()).toEqual([]);
  expect(count).toBeGreaterThan(10);
  expect(await bench.tables()).not.toContain('switchyard');
});

test('the swap for the iptables mode, and back: nothing is edited, no call fails, the chains stay what they are', async () => {
  const { node, operator } = bench;
  const [, edit = '', , watch = ''] = await guideCommands('swap');
  await operator(edit, `sed -i 's/mode: nftables/mode: ""/'`); // as kubeadm wrote it
  await writeOldRules(node, bench.service);
  const [image = ''] = await guideCommands('swap-iptables');
  const [undo = ''] = await guideCommands('back');
  const { count, failures } = await bench.callsDuring(async () => {
    await operator(image);
    expect(await operator(watch)).toContain('daemon set "kube-proxy" successfully rolled out');
    const [commands = ''] = await guideCommands('node');
    const seen = await node.run('sh', ['-euc', commands]);
    expect(seen.stdout).toMatch(/^iptables/);
    expect(seen.stdout).not.toContain('switchyard');
    const chains = await oldChains(node);
    expect(chains).toContain('KUBE-SERVICES');
    expect(chains.filter((name) => name.includes('OLDOLD'))).toEqual([]);
    await operator(undo);
  });
  expect(failures, await logs()).toEqual([]);
  expect(count).toBeGreaterThan(10);
  expect(await oldChains(node)).toContain('KUBE-SVC-OLDOLDOLDOLDOLDA');
});

test('a swap to an agent that cannot start: the rollout does not succeed, and the check names the reason', async () => {
  const { operator } = bench;
  const [, edit = '', image = '', watch = ''] = await guideCommands('swap');
  const [check = ''] = await guideCommands('check');
  expect(await operator(check)).toContain('No resources found');
  await operator(edit, `sed -i 's/mode: ""/mode: ipvs/'`);
  await operator(image);
  await expect(operator(watch.replace('10m', '3s'))).rejects.toThrow('timed out waiting for the condition');
  expect(await operator(check)).toMatch(/Warning +SwitchyardStartFailed +node\/node1 +.*no ipvs mode/);
  const [undo = ''] = await guideCommands('back');
  await operator(edit, `sed -i 's/mode: ipvs/mode: ""/'`);
  expect(await operator(undo)).toContain('successfully rolled out');
  expect(await operator('kubectl -n kube-system get daemonset kube-proxy -o yaml')).not.toContain('readinessProbe');
});

async function startCleanUp(spec: Rendered): Promise<RunningPod> {
  const [container] = spec.initContainers;
  // By hand it is the node's own bpffs, in the pod a mount of it.
  const byHand = container.command.filter((part: string) => !part.startsWith('--switchyard-ebpf-bpffs='));
  expect(await guideCommands('clean-up')).toEqual([`${byHand.join(' ')}\n`]);
  const { ended } = await startContainer(bench.node, { spec, container }, await bench.podFiles());
  const ready = ended.then((status) => {
    if (status !== 0) throw new Error(`the clean-up ended with ${status}`);
  });
  return { ready, stop: async () => undefined };
}
