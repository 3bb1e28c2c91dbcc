import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  apiResources,
  createProber,
  type LabCluster,
  type LabNode,
  type LabProcess,
  type Prober,
  type ProbeResult,
  startCluster,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../agent-log.ts';
import { type PodFiles, startContainer } from './container.ts';
import { DaemonSetPlayer, type PlayedPod } from './daemon-set-player.ts';
import { guideCommands, guideText, readmeCommands } from './guide.ts';
import { checkout, shell } from './kubectl.ts';
import { oldChains, type OldService, writeOldRules } from './old-kube-proxy.ts';
import { objectOf, type Rendered, renderOverlay } from './rendered.ts';

// Walks docs/migrate-from-kube-proxy.md: its own command lines, the real kubectl, the real agent with the command line
// of kubeadm's DaemonSet, while a pod calls a Service all the time. Played are kube-proxy (its rules, not the program),
// and the DaemonSet's controller.

const { signal } = new AbortController();
const kubeadm = fileURLToPath(new URL('kubeadm.yaml', import.meta.url));

let cluster: LabCluster;
let node: LabNode;
let caller: Prober;
let client: Prober;
let service: OldService;
/** Where the operator types. */
let desk: string;
let agent: LabProcess | undefined;
/** What the last pod's volumes hold. */
let podFiles: PodFiles;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  cluster = stack.use(
    await startCluster({ name: 'migrate', nodes: 1, ipFamilies: ['IPv4', 'IPv6'], hasAddOnKinds: true }, signal),
  );
  [node] = cluster.lab.nodes as [LabNode];
  desk = join(cluster.lab.folder, 'desk');
  await mkdir(desk);
  await symlink(join(checkout, 'deploy'), join(desk, 'deploy'));
  service = await startService();
  const server = `server: ${cluster.insideUrl}`;
  const manifest = (await readFile(kubeadm, 'utf8')).replace(/server: \S+/, server);
  await writeFile(join(cluster.lab.folder, 'kubeadm.yaml'), manifest);
  await operator(`kubectl create -f ${cluster.lab.folder}/kubeadm.yaml`);
  stack.use(new DaemonSetPlayer({ url: cluster.url, name: 'kube-proxy', start: startPod }));
  caller = stack.use(await createProber(await cluster.lab.addPod(node, 'caller'), signal));
  client = stack.use(await createProber(cluster.lab.client, signal));
  await until(async () => (await call()).status === 'answered');
});

afterAll(() => stack.disposeAsync());

async function startService(): Promise<OldService> {
  const { deployment, service } = zeroapp({ port: 8080, delayShutdown: 0, terminationGracePeriod: 1 });
  const created = await cluster.api.create(apiResources.services, service, signal);
  await cluster.api.create(apiResources.deployments, deployment, signal);
  let address: string | undefined;
  await until(async () => {
    const { items } = await cluster.api.list(apiResources.pods, {}, signal);
    address = items[0]?.status?.podIP;
    return address !== undefined;
  });
  return { clusterIp: created.spec?.clusterIP ?? '', port: 80, endpoint: `${address}:8080` };
}

/** What the operator's command lines print; a failing one throws with it. */
async function operator(commands: string, editor = 'false'): Promise<string> {
  const env = { KUBECONFIG: cluster.kubeconfig, HOME: desk, KUBE_EDITOR: editor };
  const { exitCode, output } = await shell(commands, env, desk);
  if (exitCode !== 0) throw new Error(`${commands} ended with ${exitCode}: ${output}`);
  return output;
}

/** kubelet: the ConfigMap's files, then the container; kube-proxy's own image is played by its rules. */
async function startPod(podSpec: Rendered): Promise<PlayedPod> {
  const [container] = podSpec.containers;
  agent = undefined;
  if (container.image.startsWith('registry.k8s.io/kube-proxy:')) {
    await writeOldRules(node, service);
    return { ready: Promise.resolve(), stop: async () => undefined };
  }
  const configMap = JSON.parse(await operator('kubectl -n kube-system get configmap kube-proxy -o json'));
  podFiles = { folder: join(cluster.lab.folder, 'pod'), configMaps: { 'kube-proxy': configMap.data } };
  const started = await startContainer(node, { spec: podSpec, container }, podFiles);
  agent = started;
  const isHealthy = async (): Promise<boolean> => (await health()) === 200;
  return { ready: until(isHealthy), stop: () => started.stop() };
}

async function health(): Promise<number | undefined> {
  const target = { protocol: 'http', address: node.addresses.IPv4 ?? '', port: 10_256, path: '/healthz' } as const;
  const answer = await client.probe(target);
  return answer.status === 'answered' ? answer.httpStatus : undefined;
}

function call(): Promise<ProbeResult> {
  return caller.probe({ protocol: 'http', address: service.clusterIp, port: service.port, path: '/' });
}

/** Calls the Service every 20 ms while `work` runs; resolves with what was not answered. */
async function failuresDuring(work: () => Promise<void>): Promise<readonly ProbeResult[]> {
  const failures: ProbeResult[] = [];
  const done = new AbortController();
  let count = 0;
  const calling = (async () => {
    while (!done.signal.aborted) {
      const result = await call();
      count += 1;
      if (result.status !== 'answered') failures.push(result);
      await sleep(20);
    }
  })();
  try {
    await work();
  } finally {
    done.abort();
    await calling;
  }
  expect(count).toBeGreaterThan(10);
  return failures;
}

test('the swap in place: no call fails, kube-proxy’s rules go, the node answers as the guide says', async () => {
  const [copy = '', edit = '', image = '', watch = ''] = await guideCommands('swap');
  expect(await oldChains(node)).toContain('KUBE-SERVICES');
  const failures = await failuresDuring(async () => {
    await operator(copy);
    expect(await operator(edit, `sed -i 's/mode: ""/mode: nftables/'`)).toMatch(/configmap\/kube-proxy edited/);
    expect(await operator(image)).toMatch(/daemonset.apps\/kube-proxy image updated/);
    expect(await operator(watch)).toContain('daemon set "kube-proxy" successfully rolled out');
    await until(async () => (await oldChains(node)).length === 0);
  });
  expect(failures).toEqual([]);
  const [commands = ''] = await guideCommands('node');
  const seen = await node.run('sh', ['-euc', commands]);
  expect(seen).toMatchObject({ exitCode: 0 });
  expect(seen.stdout).toMatch(/^nftables/);
  expect(seen.stdout).toMatch(/"healthy": ?true/);
  expect(seen.stdout).toContain('table inet switchyard');
  expect(seen.stdout).not.toContain('kube-proxy');
});

test('the agent ran with the command line of the DaemonSet, and says what it removed', async () => {
  const command = (await readFile(`/proc/${agent?.pid}/cmdline`, 'utf8')).split('\0').filter((part) => part !== '');
  expect(command.slice(-2)).toEqual([
    '--config=/var/lib/kube-proxy/config.conf',
    `--hostname-override=${node.nodeName}`,
  ]);
  expect(await logOf(agent as LabProcess)).toMatch(/removed what kube-proxy left.*iptables-nft, table nat/);
});

test('/debug/explain answers the guide’s question', async () => {
  const [commands = ''] = await guideCommands('explain');
  const question = commands.replace('10.96.0.10:53/UDP', `${service.clusterIp}:80`);
  const { stdout } = await node.run('sh', ['-euc', question]);
  expect(stdout).toContain(service.endpoint);
});

test('the roll-back: no call fails, and nothing of Switchyard stays', async () => {
  const [undo = '', cleanUp = ''] = await guideCommands('back');
  const failures = await failuresDuring(async () => {
    const output = await operator(undo);
    expect(output).toContain('daemonset.apps/kube-proxy rolled back');
    expect(output).toContain('daemon set "kube-proxy" successfully rolled out');
    expect(await oldChains(node)).toContain('KUBE-SERVICES');
    expect(await tables()).toContain('inet switchyard');
    await using _cleaner = new DaemonSetPlayer({
      url: cluster.url,
      name: 'switchyard-clean-up',
      start: async (podSpec) => {
        const [container] = podSpec.initContainers;
        expect(await guideCommands('clean-up')).toEqual([`${container.command.join(' ')}\n`]);
        const { ended } = await startContainer(node, { spec: podSpec, container }, podFiles);
        const isClean = ended.then((status) => {
          if (status !== 0) throw new Error(`the clean-up ended with ${status}`);
        });
        return { ready: isClean, stop: async () => undefined };
      },
    });
    expect(await operator(cleanUp)).toContain('daemonset.apps "switchyard-clean-up" deleted');
  });
  expect(failures).toEqual([]);
  expect(await tables()).not.toContain('switchyard');
});

test('the two commands of deploy/README.md install a DaemonSet of its own, set-up first', async () => {
  const [install = ''] = await readmeCommands('install');
  await using _player = new DaemonSetPlayer({
    url: cluster.url,
    name: 'switchyard',
    start: async (spec) => {
      const setUp = await startContainer(node, { spec, container: spec.initContainers[0] }, podFiles);
      expect(await setUp.ended).toBe(0);
      agent = await startContainer(node, { spec, container: spec.containers[0] }, podFiles);
      const { stop } = agent;
      return { ready: until(async () => (await health()) === 200), stop };
    },
  });
  expect(await operator(install)).toContain('daemon set "switchyard" successfully rolled out');
  expect((await call()).status).toBe('answered');
  expect(await tables()).toContain('inet switchyard');
  const { requests } = objectOf(await renderOverlay('nftables'), 'DaemonSet').spec.template.spec.containers[0]
    .resources;
  expect(requests.memory).toBe('100Mi');
  await until(async () => (await residentMiB(agent)) < 100);
});

describe('a DaemonSet of its own', () => {
  test.each(['nftables', 'custom-settings', 'standalone'])(
    '%s: set-up first, then the agent with its capabilities only',
    async (overlay) => {
      await writeOldRules(node, service);
      const objects = await renderOverlay(overlay);
      const { spec } = objectOf(objects, 'DaemonSet').spec.template;
      const files = { ...podFiles, configMaps: { ...podFiles.configMaps, ...configMapsOf(objects) } };
      const setUp = await startContainer(node, { spec, container: spec.initContainers[0] }, files);
      expect([await setUp.ended, await logOf(setUp)]).toEqual([0, expect.not.stringMatching(/^E|cannot read/m)]);
      const main = await startContainer(node, { spec, container: spec.containers[0] }, files);
      await until(async () => (await health()) === 200);
      const status = await readFile(`/proc/${main.pid}/status`, 'utf8');
      expect(/CapEff:\s+(\S+)/.exec(status)?.[1]).toBe('0000000000001000');
      expect(/NoNewPrivs:\s+(\S+)/.exec(status)?.[1]).toBe('1');
      expect((await call()).status).toBe('answered');
      // Its settings say that kube-proxy's rules are to be kept; the others need half a second to remove them.
      if (overlay === 'custom-settings') await sleep(2_000);
      else await until(async () => (await oldChains(node)).length === 0);
      expect(await oldChains(node)).toEqual(
        overlay === 'custom-settings' ? expect.arrayContaining(['KUBE-SERVICES']) : [],
      );
      await main.stop();
    },
  );
});

describe('what the guide says about what goes wrong is what happens', () => {
  test.each<readonly [string, Readonly<Record<string, string>>, string]>([
    [
      'the mode was not set',
      { 'config.conf': 'mode: nftables>mode: ""' },
      'unset means iptables, which this agent does not have yet; set mode: nftables',
    ],
    ['the ConfigMap lacks the kubeconfig', { 'kubeconfig.conf': '' }, '/var/lib/kube-proxy/kubeconfig.conf'],
  ])('%s', async (_, changes, message) => {
    const data = { ...podFiles.configMaps['kube-proxy'] };
    for (const [key, change] of Object.entries(changes)) {
      const [from = '', to = ''] = change.split('>');
      data[key] = change === '' ? '' : (data[key] ?? '').replace(from, to);
    }
    const { spec } = objectOf(await renderOverlay('nftables'), 'DaemonSet').spec.template;
    const files = { ...podFiles, configMaps: { 'kube-proxy': data } };
    const main = await startContainer(node, { spec, container: spec.containers[0] }, files);
    expect(await main.ended).toBe(1);
    expect(await logOf(main)).toContain(message);
    expect(await guideText()).toContain(message);
  });

  test('two agents on a node', async () => {
    const { spec } = objectOf(await renderOverlay('nftables'), 'DaemonSet').spec.template;
    const first = await startContainer(node, { spec, container: spec.containers[0] }, podFiles);
    await until(async () => (await health()) === 200);
    const second = await startContainer(node, { spec, container: spec.containers[0] }, podFiles);
    expect(await second.ended).toBe(1);
    expect(await logOf(second)).toMatch(
      /another agent runs on this node: pid \d+ in pod kube-system\/kube-proxy-x7b2k/,
    );
    expect(await guideText()).toContain('another agent runs on this node: pid 1 in pod kube-system/');
    await first.stop();
  });
});

/** ConfigMaps of an overlay by name; where the API server is must be said, as the README does. */
function configMapsOf(objects: readonly Rendered[]): Readonly<Record<string, Readonly<Record<string, string>>>> {
  const found = objects.filter(({ kind }) => kind === 'ConfigMap');
  return Object.fromEntries(
    found.map(({ metadata, data }) => [
      metadata.name,
      Object.fromEntries(
        Object.entries(data as Readonly<Record<string, string>>).map(([key, text]) => [
          key,
          text.replace('https://control-plane.example.com:6443', cluster.insideUrl),
        ]),
      ),
    ]),
  );
}

/** With --config it is kube-proxy's format: text. */
function logOf(process: LabProcess): Promise<string> {
  return readFile(process.logFile, 'utf8');
}

async function residentMiB(process: LabProcess | undefined): Promise<number> {
  const status = await readFile(`/proc/${process?.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

async function tables(): Promise<string> {
  return (await node.run('nft', ['list', 'tables'])).stdout;
}
