import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { LabProcess } from '@switchyard/lab';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { until } from '../agent-log.ts';
import { type PodFiles, startContainer } from './container.ts';
import { DaemonSetRunner } from './daemon-set-runner.ts';
import { guideText, readmeCommands } from './guide.ts';
import { oldChains, writeOldRules } from './old-kube-proxy.ts';
import { logOf, type OperatorBench, startOperatorBench } from './operator-bench.ts';
import { objectOf, type Rendered, renderOverlay } from './rendered.ts';

// The rendered manifests run: the real agent as their containers say, and what it says when something is wrong.

const { signal } = new AbortController();
let bench: OperatorBench;
let podFiles: PodFiles;
const running: LabProcess[] = [];

beforeAll(async () => {
  bench = await startOperatorBench('install', signal);
  await bench.operator(`sed 's/mode: ""/mode: nftables/' ${bench.kubeadmFile} | kubectl create -f -`);
  podFiles = await bench.podFiles();
});

afterEach(async () => {
  for (const process of running.splice(0)) await process.stop();
});

afterAll(() => bench?.[Symbol.asyncDispose]());

/** Starts a container of a DaemonSet's pod; it is stopped after the test. */
async function start(spec: Rendered, container: Rendered, files: PodFiles = podFiles): Promise<LabProcess> {
  const process = await startContainer(bench.node, { spec, container }, files);
  running.push(process);
  return process;
}

/** Waits until the node is forwarded. */
function healthy(): Promise<void> {
  return until(async () => (await bench.health()) === 200);
}

test('the two commands of deploy/README.md install the agent, set-up first; its memory fits the request', async () => {
  const [install = ''] = await readmeCommands('install');
  let agent: LabProcess | undefined;
  await using _runner = new DaemonSetRunner({
    url: bench.cluster.url,
    name: 'switchyard',
    start: async (spec) => {
      expect(await (await start(spec, spec.initContainers[0])).ended).toBe(0);
      agent = await start(spec, spec.containers[0]);
      const { stop } = agent;
      return { ready: healthy(), stop };
    },
  });
  expect(await bench.operator(install)).toContain('daemon set "switchyard" successfully rolled out');
  expect((await bench.call()).status).toBe('answered');
  expect(await bench.tables()).toContain('inet switchyard');
  const { requests } = (await daemonSetOf('nftables')).containers[0].resources;
  expect(requests.memory).toBe('100Mi');
  await until(async () => (await residentMiB(agent)) < 100);
});

describe('a DaemonSet of its own', () => {
  test.each(['nftables', 'custom-settings', 'standalone'])(
    '%s: set-up first, then the agent with its capabilities only',
    async (overlay) => {
      const { node, service } = bench;
      await writeOldRules(node, service);
      const spec = await daemonSetOf(overlay);
      const configMaps = { ...podFiles.configMaps, ...configMapsOf(await renderOverlay(overlay)) };
      const files = { ...podFiles, configMaps };
      const setUp = await start(spec, spec.initContainers[0], files);
      expect([await setUp.ended, await logOf(setUp)]).toEqual([0, expect.not.stringMatching(/^E|cannot read/m)]);
      const main = await start(spec, spec.containers[0], files);
      await healthy();
      const status = await readFile(`/proc/${main.pid}/status`, 'utf8');
      expect(/CapEff:\s+(\S+)/.exec(status)?.[1]).toBe('0000000000001000');
      expect(/NoNewPrivs:\s+(\S+)/.exec(status)?.[1]).toBe('1');
      expect((await bench.call()).status).toBe('answered');
      const isKept = overlay === 'custom-settings'; // its settings say so; the others need half a second to remove them
      if (isKept) await sleep(2_000);
      else await until(async () => (await logOf(main)).includes('removed what kube-proxy left'));
      expect(await oldChains(node)).toEqual(isKept ? expect.arrayContaining(['KUBE-SERVICES']) : []);
    },
  );
});

test("overlay iptables, with kubeadm's ConfigMap as it is: takes kube-proxy's chains over, with CAP_NET_RAW besides", async () => {
  const { node, service } = bench;
  await writeOldRules(node, service);
  const spec = await daemonSetOf('iptables');
  const kubeProxy = { ...podFiles.configMaps['kube-proxy'] };
  kubeProxy['config.conf'] = (kubeProxy['config.conf'] ?? '').replace('mode: nftables', 'mode: ""');
  const files = { ...podFiles, configMaps: { ...podFiles.configMaps, 'kube-proxy': kubeProxy } };
  expect(await (await start(spec, spec.initContainers[0], files)).ended).toBe(0);
  const main = await start(spec, spec.containers[0], files);
  await healthy();
  expect(/CapEff:\s+(\S+)/.exec(await readFile(`/proc/${main.pid}/status`, 'utf8'))?.[1]).toBe('0000000000003000');
  expect((await bench.call()).status).toBe('answered');
  const chains = await oldChains(node);
  expect(chains).toContain('KUBE-SERVICES');
  expect(chains.filter((name) => name.includes('OLDOLD'))).toEqual([]);
  await until(async () => (await logOf(main)).includes('removed what our other mode left'));
  expect(await bench.tables()).not.toContain('switchyard');
});

describe('what the guide says about what goes wrong is what happens', () => {
  test.each<readonly [string, (data: Record<string, string>) => void, string]>([
    [
      'the mode is ipvs',
      (data) => (data['config.conf'] = (data['config.conf'] ?? '').replace('mode: nftables', 'mode: ipvs')),
      'this agent has no ipvs mode, which is deprecated in Kubernetes too (KEP-5495: off by default in 1.40, gone in 1.43); set mode: nftables, iptables or ebpf',
    ],
    [
      'the ConfigMap lacks the kubeconfig',
      (data) => (data['kubeconfig.conf'] = ''),
      '/var/lib/kube-proxy/kubeconfig.conf',
    ],
  ])('%s', async (_, change, message) => {
    const data = { ...podFiles.configMaps['kube-proxy'] };
    change(data);
    const spec = await daemonSetOf('nftables');
    const main = await start(spec, spec.containers[0], { ...podFiles, configMaps: { 'kube-proxy': data } });
    expect(await main.ended).toBe(1);
    expect(await logOf(main)).toContain(message);
    expect(await guideText()).toContain(message);
  });

  test('two agents on a node', async () => {
    const spec = await daemonSetOf('nftables');
    await start(spec, spec.containers[0]);
    await healthy();
    const second = await start(spec, spec.containers[0]);
    expect(await second.ended).toBe(1);
    const said = 'another agent runs on this node: pid';
    expect(await logOf(second)).toMatch(new RegExp(`${said} \\d+ in pod kube-system/kube-proxy-x7b2k`));
    expect(await guideText()).toContain(`${said} 1 in pod kube-system/`);
  });
});

/** The pod of an overlay's DaemonSet. */
async function daemonSetOf(overlay: string): Promise<Rendered> {
  return objectOf(await renderOverlay(overlay), 'DaemonSet').spec.template.spec;
}

/** ConfigMaps of an overlay by name; where the API server is must be said, as the README does. */
function configMapsOf(objects: readonly Rendered[]): PodFiles['configMaps'] {
  const found = objects.filter(({ kind }) => kind === 'ConfigMap');
  const here = (text: string): string =>
    text.replace('https://control-plane.example.com:6443', bench.cluster.insideUrl);
  return Object.fromEntries(
    found.map(({ metadata, data }) => {
      const texts = Object.entries(data as Readonly<Record<string, string>>);
      return [metadata.name, Object.fromEntries(texts.map(([key, text]) => [key, here(text)]))];
    }),
  );
}

async function residentMiB(process: LabProcess | undefined): Promise<number> {
  const status = await readFile(`/proc/${process?.pid}/status`, 'utf8');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}
