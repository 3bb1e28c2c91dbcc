import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import {
  createLab,
  createProber,
  type Lab,
  type LabNode,
  type LabProcess,
  type Prober,
  startEchoServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigFolder } from '../../src/config/testing/config-folder.ts';
import { kubeadmFile } from '../../src/config/testing/kubeadm-file.ts';
import { readLog, until } from './agent-log.ts';

const program = fileURLToPath(new URL('../../bin/switchyard-agent', import.meta.url));
const { signal } = new AbortController();

let lab: Lab;
let node: LabNode;
let client: Prober;
let agent: LabProcess;
let volume: ConfigFolder;
let config: string;
let versions = 0;

const cluster = `
apiVersion: v1
kind: Service
metadata: { name: cart, namespace: shop }
spec:
  type: NodePort
  clusterIP: 10.96.0.10
  clusterIPs: [10.96.0.10]
  ipFamilies: [IPv4]
  ports: [{ name: http, port: 80, targetPort: 8080, nodePort: 30080 }]
---
apiVersion: v1
kind: Node
metadata: { name: node1 }
status: { addresses: [{ type: InternalIP, address: 172.18.0.11 }] }
`;

const slice = (address: string): string => `---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: cart-1, namespace: shop, labels: { kubernetes.io/service-name: cart } }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: ["${address}"], nodeName: node1 }]
`;

/** kubeadm's file, for our mode, a cluster of manifests, and a machine whose settings are not ours; then `changes`. */
function fileWith(changes: Readonly<Record<string, string>> = {}): string {
  const base = {
    'mode: ""': 'mode: nftables',
    'kubeconfig: /var/lib/kube-proxy/kubeconfig.conf': 'kubeconfig: ""',
    'maxPerCore: null': 'maxPerCore: 0',
    'oomScoreAdj: null': 'oomScoreAdj: 0',
  };
  let text = kubeadmFile;
  for (const [old, now] of Object.entries({ ...base, ...changes })) {
    if (!text.includes(old)) throw new Error(`nothing says ${old}`);
    text = text.replace(old, now);
  }
  return text;
}

/** Publishes a file as the kubelet does with a ConfigMap. */
async function publish(text: string): Promise<string> {
  return volume.publish(`v${++versions}`, 'config.conf', text);
}

const flags = (): readonly string[] => [
  `--config=${config}`,
  '--hostname-override=node1',
  '--logging-format=json',
  `--switchyard-manifests=${lab.folder}/manifests`,
];

beforeAll(async () => {
  lab = await createLab({ name: 'agentcfg', nodes: 1, ipFamilies: ['IPv4'] }, signal);
  [node] = lab.nodes as [LabNode];
  client = await createProber(lab.client, signal);
  const pod = await lab.addPod(node, 'one');
  startEchoServer(pod, { pod: 'one', http: [8080] });
  await mkdir(`${lab.folder}/manifests`);
  await writeFile(`${lab.folder}/manifests/all.yaml`, cluster + slice(pod.addresses.IPv4 ?? ''));
  volume = await ConfigFolder.create();
  config = await publish(fileWith());
  agent = node.spawn(program, flags());
  await until(answers);
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await lab?.[Symbol.asyncDispose]();
  await volume?.[Symbol.asyncDispose]();
});

async function answers(): Promise<boolean> {
  const result = await client.probe({ protocol: 'http', address: node.addresses.IPv4 ?? '', port: 30_080 });
  return result.status === 'answered';
}

async function messages(): Promise<readonly string[]> {
  return (await readLog(agent)).map(({ msg }) => msg);
}

async function configz(): Promise<Readonly<Record<string, unknown>>> {
  const script = `fetch('http://127.0.0.1:10249/configz').then((r) => r.text()).then((t) => process.stdout.write(t))`;
  const { stdout } = await node.run(process.execPath, ['-e', script]);
  return (JSON.parse(stdout) as Record<string, Record<string, unknown>>)['kubeproxy.config.k8s.io'] ?? {};
}

describe("an agent with kubeadm's ConfigMap", () => {
  test('runs, with nothing to say about the file', async () => {
    expect((await readLog(agent)).filter(({ level }) => level !== 'info')).toEqual([]);
    expect(await messages()).not.toContain('setting has no effect');
    expect(await configz()).toMatchObject({
      mode: 'nftables',
      clusterCIDR: '10.244.0.0/16',
      nodePortAddresses: ['primary'],
    });
    const status = await readFile(`/proc/${agent.pid}/status`, 'utf8');
    const [, resident = ''] = /VmRSS:\s+(\d+) kB/.exec(status) ?? [];
    process.stdout.write(`resident with --config: ${(Number(resident) / 1024).toFixed(0)} MB\n`);
  });

  test('takes over where NodePorts answer when the volume is updated, in the same process', async () => {
    config = await publish(fileWith({ 'nodePortAddresses: null': 'nodePortAddresses: [192.0.2.0/24]' }));
    await until(async () => !(await answers()));
    expect(await configz()).toMatchObject({ nodePortAddresses: ['192.0.2.0/24'] });
    await publish(fileWith({ 'verbosity: 0': 'verbosity: 4' }));
    await until(answers);
    await until(async () => (await readLog(agent)).some(({ level }) => level === 'debug'));
    const changes = (await readLog(agent)).filter(({ msg }) => msg === 'the configuration changed');
    expect(changes.map(({ settings }) => settings)).toEqual([
      ['nodePortAddresses: ["primary"] -> ["192.0.2.0/24"]'],
      ['logging.verbosity: 0 -> 4', 'nodePortAddresses: ["192.0.2.0/24"] -> ["primary"]'],
    ]);
  });

  test('keeps what it has when the new file is broken', async () => {
    await publish(fileWith({ 'verbosity: 0': 'verbosity: many' }));
    const said = 'the changed configuration is broken, the old one stays in force';
    await until(async () => (await messages()).includes(said));
    expect(await answers()).toBe(true);
  });

  test('ends for another setting, names it on the last line, and leaves forwarding', async () => {
    await publish(fileWith({ 'healthzBindAddress: ""': 'healthzBindAddress: 127.0.0.1' }));
    expect(await agent.ended).toBe(1);
    const lines = (await readFile(agent.logFile, 'utf8')).trimEnd().split('\n');
    expect(lines.at(-1)).toBe(
      `switchyard-agent: ending for a restart, since ${config} changed a setting that a running process cannot take ` +
        'over: healthzBindAddress: "0.0.0.0:10256" -> "127.0.0.1:10256"; forwarding stays in place',
    );
    expect(await answers()).toBe(true);
  });
});

test('a mode that does not exist here is refused with what to set', async () => {
  const file = await volume.write('kubeadm.conf', kubeadmFile.replace('mode: ""', 'mode: ipvs'));
  const { exitCode, stderr } = await node.run(program, [`--config=${file}`]);
  expect(exitCode).toBe(1);
  expect(stderr).toBe(
    `switchyard-agent: KubeProxyConfiguration.mode (${file}:52): Invalid value: "ipvs": this agent has no ipvs mode, which ` +
      'is deprecated in Kubernetes too (KEP-5495: off by default in 1.40, gone in 1.43); set mode: nftables, iptables or ebpf (--proxy-mode)\n',
  );
});

describe('--write-config-to', () => {
  test('writes what loads as the same', async () => {
    const file = `${volume.path}/written.yaml`;
    const write = async (...args: readonly string[]): Promise<string> => {
      const { exitCode, stderr } = await node.run(program, [...args, `--write-config-to=${file}`]);
      expect(exitCode, stderr).toBe(0);
      return readFile(file, 'utf8');
    };
    const first = await write('--proxy-mode=nftables', '--cluster-cidr=10.1.0.0/16', '--oom-score-adj=5');
    expect(first).toContain('clusterCIDR: "10.1.0.0/16"\n');
    await writeFile(`${volume.path}/read.yaml`, first);
    expect(await write(`--config=${volume.path}/read.yaml`)).toBe(first);
  });

  test('leaves the old file when the disk is full, and says so', async () => {
    const script = `set -e
      mount -t tmpfs -o size=16k none "$1"; echo old > "$1/out.yaml"
      dd if=/dev/zero of="$1/fill" bs=1k 2>/dev/null || true
      "$2" --proxy-mode=nftables --write-config-to="$1/out.yaml" && exit 9
      cat "$1/out.yaml"; ls -A "$1"`;
    const folder = `${volume.path}/full`;
    await mkdir(folder);
    const { exitCode, stdout, stderr } = await node.run('unshare', ['-m', 'sh', '-c', script, 'sh', folder, program]);
    expect([exitCode, stdout]).toEqual([0, 'old\nfill\nout.yaml\n']);
    expect(stderr).toMatch(
      /^switchyard-agent: cannot write \S*\/out\.yaml: ENOSPC: no space left on device, write; the old file is unchanged\n$/,
    );
  });
});
