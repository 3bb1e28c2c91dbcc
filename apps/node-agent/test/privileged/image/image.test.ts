import { readdir, readFile, readlink } from 'node:fs/promises';
import { apiResources } from '@switchyard/core/kubernetes';
import {
  createProber,
  type DockerEngine,
  dockerPackages,
  type LabCluster,
  type LabNode,
  type Prober,
  startCluster,
  startDockerEngine,
  zeroapp,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { debianRoot, machineArchitecture } from '../../../../../tools/debian/debian-root.ts';
import { buildImage, buildLocalBase } from '../../../../../tools/images/build-image.ts';
import { type BuiltImage, describeImage } from '../../../../../tools/images/docker.ts';
import { kubeadmFile } from '../../../src/config/testing/kubeadm-file.ts';
import { until } from '../agent-log.ts';
import { residentMegabytes, stopContainer, succeed, writeConfigMap } from './container.ts';

// The production Dockerfile, built by a real Docker Engine on a base made of this machine's Debian packages, and run in the
// network of a lab node with the rights and the command line of kubeadm's DaemonSet, or less.

const { signal } = new AbortController();
const architecture = machineArchitecture();
const kubeProxy = '/usr/local/bin/kube-proxy';
const configFolder = '/var/lib/kube-proxy';
const rights = ['--read-only', '--cap-drop', 'ALL', '--cap-add', 'NET_ADMIN', '--security-opt', 'no-new-privileges'];

let cluster: LabCluster;
let node: LabNode;
let client: Prober;
let engine: DockerEngine;
let image: BuiltImage;
let forIptables: BuiltImage;
let forEbpf: BuiltImage;
let clusterIp: string;
let nodePort: number;

beforeAll(async () => {
  const programs = await debianRoot({ ...dockerPackages, signal });
  cluster = await startCluster({ name: 'image', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal);
  [node] = cluster.lab.nodes as [LabNode];
  client = await createProber(cluster.lab.client, signal);
  engine = await startDockerEngine({ lab: cluster.lab, host: node, programs }, signal);
  const docker = engine.command;
  const base = await buildLocalBase({ architecture, tag: 'base:test', docker, signal });
  const common = { architecture, base: base.tag, docker, signal };
  image = await buildImage({ ...common, image: 'agent-nftables', tag: 'agent:test' });
  forIptables = await buildImage({ ...common, image: 'agent-iptables', tag: 'agent-iptables:test' });
  forEbpf = await buildImage({ ...common, image: 'agent-ebpf', tag: 'agent-ebpf:test' });
  const kubeconfig = await readFile(cluster.insideKubeconfig, 'utf8');
  const unlimited = kubeadmFile.replace('maxPerCore: null', 'maxPerCore: 0');
  for (const [name, mode] of [
    ['kube-proxy', 'mode: nftables'],
    ['as-kubeadm-made-it', 'mode: ""'],
    ['ebpf', 'mode: ebpf'],
  ] as const) {
    const files = { 'config.conf': unlimited.replace('mode: ""', mode), 'kubeconfig.conf': kubeconfig };
    await writeConfigMap(`${cluster.lab.folder}/${name}`, files);
  }
  const { deployment, service } = zeroapp({ delayShutdown: 0, terminationGracePeriod: 1 });
  const spec = { ...service.spec, ipFamilyPolicy: 'PreferDualStack' as const };
  const created = await cluster.api.create(apiResources.services, { ...service, spec }, signal);
  nodePort = created.spec?.ports?.[0]?.nodePort ?? 0;
  clusterIp = created.spec?.clusterIP ?? '';
  await cluster.api.create(apiResources.deployments, deployment, signal);
});

afterAll(async () => {
  await client?.[Symbol.asyncDispose]();
  await engine?.[Symbol.asyncDispose]();
  await cluster?.[Symbol.asyncDispose]();
});

async function isAnswering(family: 'IPv4' | 'IPv6'): Promise<boolean> {
  const address = node.addresses[family] ?? '';
  return (await client.probe({ protocol: 'http', address, port: nodePort, path: '/' })).status === 'answered';
}

function runOnce(entryPoint: string, args: readonly string[]): ReturnType<DockerEngine['cli']> {
  const options = ['--rm', '--network', 'host', ...rights, '--entrypoint', entryPoint];
  return engine.cli(['run', ...options, image.tag, ...args]);
}

/** Adds a chain to the table nat of the node, and removes it; returns what the program said, nothing if all went well. */
async function addAndRemoveChain(restore: string, rightsToo: readonly string[]): Promise<readonly string[]> {
  const options = ['--rm', '--interactive', '--network', 'host', ...rights, ...rightsToo, '--entrypoint', restore];
  const chain = `SWY-${restore.toUpperCase()}`;
  const rule = `-A ${chain} -m comment --comment "of a test" -m conntrack --ctstate NEW -j RETURN`;
  const said: string[] = [];
  for (const lines of [`:${chain} - [0:0]\n${rule}`, `-F ${chain}\n-X ${chain}`]) {
    const command = ['run', ...options, image.tag, '--wait', '--noflush'];
    const { exitCode, stderr } = await engine.cli(command, { stdin: `*nat\n${lines}\nCOMMIT\n` });
    said.push(exitCode === 0 ? stderr : `${exitCode}: ${stderr}`);
  }
  return said;
}

describe('the image', () => {
  test('has the layers base, node, programs and agent, and is smaller than 160 MB', () => {
    process.stdout.write(`${describeImage(image)}\n`);
    expect(image.layers.map((layer) => layer.name)).toEqual(['base', 'node', 'programs', 'agent']);
    expect(image.size).toBeLessThan(160e6);
  });

  test.each([
    [kubeProxy, ['--version'], /^switchyard-agent /],
    ['/usr/local/bin/switchyard-agent', ['--version'], /^switchyard-agent /],
    ['iptables-nft-save', ['--version'], /nf_tables/],
    ['ip6tables-nft-save', [], /^$/],
    ['iptables-legacy-restore', ['--version'], /legacy/],
  ])('runs %s %j with CAP_NET_ADMIN only', async (program, args, output) => {
    expect(await runOnce(program, args)).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(output) as string,
    });
  });

  test('iptables-nft-restore changes rules of the node on a read-only root', async () => {
    expect(await addAndRemoveChain('iptables-nft-restore', [])).toEqual(['', '']);
  });

  test('iptables-legacy-restore does too, with CAP_NET_RAW for its raw socket, if the kernel still has legacy iptables', async () => {
    for (const said of await addAndRemoveChain('iptables-legacy-restore', ['--cap-add', 'NET_RAW'])) {
      expect(said).toMatch(/^$|Table does not exist/);
    }
  });

  test.each(['/bin/sh', '/bin/bash', '/usr/bin/apt-get', '/usr/bin/env', '/usr/sbin/nft'])(
    'has no %s',
    async (program) => {
      expect(await runOnce(program, [])).toMatchObject({ exitCode: 127 });
    },
  );
});

describe("the agent in a container with kubeadm's command line", () => {
  let pid: number;

  beforeAll(async () => {
    const mounts = ['--volume', `${cluster.lab.folder}/kube-proxy:${configFolder}:ro`];
    const options = ['--detach', '--name', 'kube-proxy', '--network', 'host', ...rights, ...mounts];
    const command = [kubeProxy, `--config=${configFolder}/config.conf`, `--hostname-override=${node.nodeName}`];
    await succeed(engine, ['run', ...options, '--entrypoint', '', image.tag, ...command]);
    await until(() => isAnswering('IPv4'));
    [pid = 0] = await engine.pidsOf('kube-proxy');
  });

  test.each(['IPv4', 'IPv6'] as const)('forwards a NodePort of %s', async (family) => {
    await until(() => isAnswering(family));
    const answer = await client.probe({
      protocol: 'http',
      address: node.addresses[family] ?? '',
      port: 10_256,
      path: '/healthz',
    });
    expect(answer).toMatchObject({ status: 'answered', httpStatus: 200 });
  });

  test('is one process, with small memory settings, and below 80 MB', async () => {
    // Programs that look for what kube-proxy left come and go at the start.
    await until(async () => (await engine.pidsOf('kube-proxy')).join() === String(pid));
    expect(await readlink(`/proc/${pid}/ns/net`)).toBe(
      (await node.run('readlink', ['/proc/self/ns/net'])).stdout.trim(),
    );
    expect((await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0').slice(0, 4)).toEqual([
      '/usr/local/bin/node',
      '--max-semi-space-size=1',
      '--no-parallel-scavenge',
      '/usr/local/lib/switchyard/main.mjs',
    ]);
    expect(await readFile(`/proc/${pid}/environ`, 'utf8')).toContain('MALLOC_ARENA_MAX=1');
    // The agent returns what its start needed 2, 4, 8 and 16 s after it.
    await expect.poll(() => residentMegabytes(pid)).toBeLessThan(80);
    process.stdout.write(`resident in the container: ${(await residentMegabytes(pid)).toFixed(0)} MB\n`);
  });

  test('ends at SIGTERM with exit code 0, and its rules stay', async () => {
    const started = performance.now();
    expect(await stopContainer(engine, 'kube-proxy', 20)).toEqual({ exitCode: 0, isOutOfMemory: false });
    expect(performance.now() - started).toBeLessThan(10_000);
    const log = await engine.cli(['logs', 'kube-proxy']);
    expect(log.stdout + log.stderr).toContain('forwarding stays in place');
    for (const family of ['IPv4', 'IPv6'] as const) expect(await isAnswering(family)).toBe(true);
  });

  test('says what is wrong with its flags and ends, as a container of the same image', async () => {
    const wrong = await runOnce(kubeProxy, ['--no-such-flag']);
    expect(wrong).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('no-such-flag') as string });
  });
});

describe('the image for the iptables mode', () => {
  test('has the layers of the other one, which a node keeps once', async () => {
    process.stdout.write(`${describeImage(forIptables)}\n`);
    const layersOf = async ({ tag }: BuiltImage): Promise<string> =>
      succeed(engine, ['image', 'inspect', '--format', '{{json .RootFS.Layers}}', tag]);
    expect(await layersOf(forIptables)).toBe(await layersOf(image));
  });

  test("runs on kubeadm's command line and unchanged ConfigMap, takes over from the other mode, and keeps its chains", async () => {
    const mounts = ['--volume', `${cluster.lab.folder}/as-kubeadm-made-it:${configFolder}:ro`];
    const options = [
      '--detach',
      '--name',
      'iptables',
      '--network',
      'host',
      ...rights,
      '--cap-add',
      'NET_RAW',
      ...mounts,
    ];
    const command = [kubeProxy, `--config=${configFolder}/config.conf`, `--hostname-override=${node.nodeName}`];
    await succeed(engine, ['run', ...options, '--entrypoint', '', forIptables.tag, ...command]);
    const log = async (): Promise<string> => {
      const { stdout, stderr } = await engine.cli(['logs', 'iptables']);
      return stdout + stderr;
    };
    await until(async () => (await log()).includes('removed what our other mode left'));
    expect(await log()).toMatch(/Using iptables proxy[^]*variant of iptables.*nft/);
    expect((await node.run('nft', ['list', 'tables'])).stdout).not.toContain('switchyard');
    for (const family of ['IPv4', 'IPv6'] as const) expect(await isAnswering(family)).toBe(true);
    expect(await stopContainer(engine, 'iptables', 20)).toEqual({ exitCode: 0, isOutOfMemory: false });
    for (const family of ['IPv4', 'IPv6'] as const) expect(await isAnswering(family)).toBe(true);
    expect((await node.run('iptables-nft-save', ['-t', 'nat'])).stdout).toMatch(/^:KUBE-SVC-[A-Z2-7]{16} /m);
  });
});

describe('the image for the ebpf mode', () => {
  /** As in deploy/kustomize/overlays/ebpf; the engine's own root of cgroups stands for the node's. */
  const places = (): readonly string[] => [
    `--volume=${node.bpffsPath}:/run/switchyard/bpf`,
    '--volume=/sys/fs/cgroup:/run/switchyard/cgroup:ro',
    `--volume=${cluster.lab.folder}/ebpf:${configFolder}:ro`,
  ];
  const ebpfRights = ['--cap-add', 'SYS_ADMIN'];
  const flags = [
    `--config=${configFolder}/config.conf`,
    '--switchyard-ebpf-bpffs=/run/switchyard/bpf',
    '--switchyard-ebpf-cgroup=/run/switchyard/cgroup',
  ];
  const logOf = async (container: string): Promise<string> => {
    const { stdout, stderr } = await engine.cli(['logs', container]);
    return stdout + stderr;
  };
  /** The kernel has files of its own there. */
  const isPinned = async (): Promise<boolean> => (await readdir(node.bpffsPath ?? '')).includes('switchyard');
  /** Asked by a process of the agent's container, whose socket is the node's. */
  const askFromNode = async (): Promise<string> => {
    const ask = `fetch('http://${clusterIp}/', { signal: AbortSignal.timeout(3000) }).then((r) => console.log(r.status), (e) => console.log(String(e.cause)))`;
    return (await engine.cli(['exec', 'ebpf', '/usr/local/bin/node', '-e', ask])).stdout.trim();
  };

  test('is the others and one layer, with the terms of what is in it', async () => {
    process.stdout.write(`${describeImage(forEbpf)}\n`);
    expect(forEbpf.layers.map((layer) => layer.name)).toEqual(['base', 'node', 'programs', 'agent', 'ebpf']);
    expect(forEbpf.size - image.size).toBeLessThan(2e6);
    const layersOf = async ({ tag }: BuiltImage): Promise<readonly string[]> =>
      JSON.parse(await succeed(engine, ['image', 'inspect', '--format', '{{json .RootFS.Layers}}', tag])) as string[];
    expect((await layersOf(forEbpf)).slice(0, -1)).toEqual(await layersOf(image));
    await succeed(engine, ['create', '--name', 'to-look-into', forEbpf.tag]);
    for (const name of ['libbpf1', 'libelf1', 'zlib1g', 'switchyard/bpf']) {
      await succeed(engine, ['cp', `to-look-into:/usr/share/doc/${name}/copyright`, '-']);
    }
  });

  test('another image says which file it lacks, where it runs, and leaves what forwards alone', async () => {
    const options = ['--rm', '--network', 'host', ...rights, ...ebpfRights, ...places(), '--entrypoint', kubeProxy];
    const refused = await engine.cli(['run', ...options, image.tag, ...flags, `--hostname-override=${node.nodeName}`]);
    expect(refused).toMatchObject({
      exitCode: 1,
      stderr: expect.stringMatching(/cannot run --proxy-mode ebpf: .*switchyard_bpf\.node is missing/) as string,
    });
    expect(await isAnswering('IPv4')).toBe(true);
  });

  test.each([
    ['cgroup2', '--switchyard-ebpf-cgroup', /\/sys\/fs\/cgroup shows this container alone: mount the host's/],
    [
      'bpffs',
      '--switchyard-ebpf-bpffs',
      /no bpffs is at \/sys\/fs\/bpf, and one mounted in this container would end with it/,
    ],
  ])(
    "without the node's %s it refuses: what it attached would serve nobody, or end with the container",
    async (...row) => {
      const [, flag, message] = row;
      const options = ['--rm', '--network', 'host', ...rights, ...ebpfRights, ...places(), '--entrypoint', kubeProxy];
      const rest = flags.filter((one) => !one.startsWith(flag));
      const refused = await engine.cli([
        'run',
        ...options,
        forEbpf.tag,
        ...rest,
        `--hostname-override=${node.nodeName}`,
      ]);
      expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringMatching(message) as string });
      expect(await isPinned()).toBe(false);
    },
  );

  test("takes over from the iptables mode with the overlay's rights, serves clients outside and sockets here", async () => {
    const options = ['--detach', '--name', 'ebpf', '--network', 'host', ...rights, ...ebpfRights, ...places()];
    const command = [kubeProxy, ...flags, `--hostname-override=${node.nodeName}`];
    await succeed(engine, ['run', ...options, '--entrypoint', '', forEbpf.tag, ...command]);
    await until(async () => (await logOf('ebpf')).includes('removed what our other mode left'));
    expect(await isPinned()).toBe(true);
    for (const family of ['IPv4', 'IPv6'] as const) expect(await isAnswering(family)).toBe(true);
    expect(await askFromNode()).toBe('200');
    const [pid = 0] = await engine.pidsOf('ebpf');
    const resident = await residentMegabytes(pid);
    process.stdout.write(`resident in the container, ebpf: ${resident.toFixed(0)} MB\n`);
    expect(resident).toBeLessThan(100); // 80 to 91 were seen, by when rubbish was collected
    expect(await stopContainer(engine, 'ebpf', 20)).toEqual({ exitCode: 0, isOutOfMemory: false });
    for (const family of ['IPv4', 'IPv6'] as const) expect(await isAnswering(family)).toBe(true);
  });

  test('another image removes all of it without rights of BPF, where it sees the bpffs, and nothing where it does not', async () => {
    // As in deploy/kustomize/overlays/clean-up.
    const options = ['--rm', '--network', 'host', ...rights, '--cap-add', 'NET_RAW', '--entrypoint', kubeProxy];
    const blind = await engine.cli(['run', ...options, image.tag, '--cleanup']);
    expect(blind).toMatchObject({ exitCode: 1, stdout: expect.stringContaining('no bpffs is mounted at') as string });
    expect(await isAnswering('IPv4')).toBe(true);
    const cleanUp = [...options, ...places(), image.tag, '--cleanup', '--switchyard-ebpf-bpffs=/run/switchyard/bpf'];
    const { exitCode, stdout, stderr } = await engine.cli(['run', ...cleanUp]);
    expect({ exitCode, stderr, stdout }).toMatchObject({ exitCode: 0, stderr: '' });
    process.stdout.write(stdout);
    expect(await isPinned()).toBe(false);
    expect((await node.run('nft', ['list', 'tables'])).stdout).not.toContain('switchyard');
    expect(await isAnswering('IPv4')).toBe(false);
  });
});
