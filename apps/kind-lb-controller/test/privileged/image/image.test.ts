import { readFile } from 'node:fs/promises';
import { millis } from '@switchyard/core';
import { apiResources, type ObjectClient } from '@switchyard/core/kubernetes';
import {
  createLab,
  createProber,
  type DockerEngine,
  dockerPackages,
  joinDockerNetwork,
  type Lab,
  startDockerEngine,
  startEchoServer,
  startKindCluster,
  startLabApiServer,
} from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { debianRoot, machineArchitecture } from '../../../../../tools/debian/debian-root.ts';
import { buildImage, buildLocalBase } from '../../../../../tools/images/build-image.ts';
import { type BuiltImage, describeImage } from '../../../../../tools/images/docker.ts';
import { runArguments } from '../../../src/docker/container-arguments.ts';
import { containerName } from '../../../src/docker/container-names.ts';
import { healthProfile } from '../../../src/health-profile/health-profiles.ts';
import type { Target } from '../../../src/spec/load-balancer-spec.ts';
import { exampleSpec, nodeTargets, portSpec } from '../../../src/testing/example-specs.ts';
import { containerFiles } from '../../../src/worker/container-files.ts';
import type { WorkerAnswer, WorkerRequest } from '../../../src/worker/protocol.ts';
import { rightsInGuide } from './guide.ts';

// The production Dockerfiles, built by a real Docker Engine on a base made of this machine's Debian packages.

const { signal } = new AbortController();
const stack = new AsyncDisposableStack();
let lab: Lab;
let engine: DockerEngine;
let loadBalancer: BuiltImage;
let controller: BuiltImage;

beforeAll(async () => {
  const programs = await debianRoot({ ...dockerPackages, signal });
  lab = stack.use(await createLab({ name: 'lbimage', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal));
  engine = stack.use(await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal));
  stack.use(await joinDockerNetwork({ lab, host: lab.loadBalancer, engine }, signal));
  startEchoServer(lab.nodes[0]!, { pod: 'echo', http: [30080, 32080, 10256], udp: [30053] });
  const common = { architecture: machineArchitecture(), docker: engine.command, signal };
  const { tag: base } = await buildLocalBase({ ...common, tag: 'base:test' });
  loadBalancer = await buildImage({ ...common, base, image: 'load-balancer', tag: 'load-balancer:test' });
  controller = await buildImage({ ...common, base, image: 'kind-lb-controller', tag: 'kind-lb-controller:test' });
});

afterAll(() => stack.disposeAsync());

async function docker(...args: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await engine.cli(args);
  if (exitCode !== 0) throw new Error(`docker ${args.join(' ')} exited with ${exitCode}: ${stderr}`);
  return stdout.trim();
}

const layersOf = async ({ tag }: BuiltImage): Promise<readonly string[]> =>
  JSON.parse(await docker('image', 'inspect', '--format', '{{json .RootFS.Layers}}', tag)) as string[];

describe('the images', () => {
  test('have the layers of their definitions, and the controller’s has all of the load balancer’s below the Docker CLI', async () => {
    process.stdout.write(`${describeImage(loadBalancer)}\n${describeImage(controller)}\n`);
    const shared = ['base', 'node', 'programs', 'settings', 'run', 'controller'];
    expect(loadBalancer.layers.map(({ name }) => name)).toEqual(shared);
    expect(controller.layers.map(({ name }) => name)).toEqual([...shared, 'docker']);
    expect((await layersOf(controller)).slice(0, -1)).toEqual(await layersOf(loadBalancer));
  });

  test('are not larger than they need to be', () => {
    expect(loadBalancer.size).toBeLessThan(170e6);
    expect(controller.size).toBeLessThan(230e6);
  });

  test.each([
    ['haproxy', ['-vv'], /^HAProxy version 2\.[^]*Built with Lua version/],
    ['nft', ['--version'], /^nftables v/],
    ['ip', ['-V'], /^ip utility/],
    ['switchyard-lb', ['--help'], /^Usage: switchyard-lb/],
  ])('run %s %j', async (program, args, output) => {
    const options = ['--rm', '--network=none', '--cap-drop=ALL', `--entrypoint=${program}`];
    const ran = await engine.cli(['run', ...options, controller.tag, ...args]);
    expect(ran).toMatchObject({ exitCode: 0, stdout: expect.stringMatching(output) as string });
  });

  test('have no shell, no package manager, no program with more rights than its caller', async () => {
    await docker('create', '--name', 'listed', controller.tag);
    const archive = `${lab.folder}/controller.tar`;
    await docker('export', '--output', archive, 'listed');
    const { stdout } = await lab.client.run('tar', ['-tvf', archive]);
    expect(stdout).toMatch(/ usr\/sbin\/haproxy$/m);
    expect(stdout).toMatch(/ usr\/share\/doc\/haproxy\/copyright$/m);
    expect(stdout).not.toMatch(/\/(sh|bash|dash|busybox|env|apt-get|dpkg|perl)( -> .*)?$/m);
    expect(stdout).not.toMatch(/^-..[sS]|^-.{5}[sS]/m);
  });
});

describe('a load balancer’s container, as the controller makes it', () => {
  const spec = exampleSpec('web', {
    ports: [portSpec(53, targets(30053), 'UDP'), portSpec(80, targets(30080))],
    profile: healthProfile('cloud-provider-kind', { interval: millis(200) }),
  });
  const name = containerName(spec.id);

  beforeAll(async () => {
    const fixed = {
      network: 'kind',
      hasIpv6: true,
      interfaceSettings: 'sysctl',
      publishOn: undefined,
      ports: [],
    } as const;
    const image = { image: loadBalancer.tag, imageId: loadBalancer.id, isDiscovered: false };
    await docker(...runArguments({ id: spec.id, addresses: spec.addresses, ...fixed, ...image }, new Set()));
  });

  /** A master and a worker, and nothing else. */
  async function untilHaproxyRuns(): Promise<readonly number[]> {
    const names = async (): Promise<readonly string[]> => {
      const pids = await engine.pidsOf(name);
      return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')));
    };
    await expect.poll(names).toEqual(['haproxy\n', 'haproxy\n']);
    return engine.pidsOf(name);
  }

  async function apply(): Promise<WorkerAnswer> {
    const request: WorkerRequest = { command: 'apply', spec, isPublished: false };
    const options = { stdin: JSON.stringify(request) };
    const { stdout, stderr } = await engine.cli(
      ['exec', '--interactive', '--user=0', name, 'switchyard-lb-worker'],
      options,
    );
    expect(stdout, stderr).toMatch(/^\{.*\}\n$/);
    return JSON.parse(stdout) as WorkerAnswer;
  }

  test('starts by itself, without a right', async () => {
    for (const pid of await untilHaproxyRuns()) {
      const status = await readFile(`/proc/${pid}/status`, 'utf8');
      expect(status).toMatch(/^Uid:\t65532\t65532\t65532\t65532$/m);
      expect(status).toMatch(/^CapEff:\t0{16}$/m);
      expect(status).toMatch(/^CapPrm:\t0{16}$/m);
    }
  });

  test('has nftables in its namespace for its root only', async () => {
    const list = ['nft', 'list', 'ruleset'];
    expect(await engine.cli(['exec', '--user=0', name, ...list])).toMatchObject({ exitCode: 0 });
    expect(await engine.cli(['exec', name, ...list])).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining('Operation not permitted') as string,
    });
  });

  test('serves what its worker is told, over both families, by HAProxy and by the kernel', async () => {
    expect(await apply()).toEqual({ status: 'applied' });
    expect(await apply()).toEqual({ status: 'unchanged' });
    await expectAnswers();
  });

  async function expectAnswers(): Promise<void> {
    await using client = await createProber(lab.client, signal);
    for (const address of spec.addresses) {
      for (const [protocol, port] of [
        ['http', 80],
        ['udp', 53],
      ] as const) {
        await expect
          .poll(() => client.probe({ protocol, address, port }))
          .toMatchObject({ status: 'answered', by: 'echo' });
      }
    }
  }

  test('takes less than 30 MB', async () => {
    const sizes = (await untilHaproxyRuns()).map(residentMegabytes);
    const sum = (await Promise.all(sizes)).reduce((total, size) => total + size, 0);
    process.stdout.write(`resident in a load balancer's container: ${sum.toFixed(0)} MB\n`);
    expect(sum).toBeLessThan(30);
  });

  test('starts idle after a restart, whatever was left behind, and can be filled again', async () => {
    await engine.cli(['exec', '--interactive', '--user=0', name, 'tee', containerFiles.configuration], {
      stdin: 'nonsense',
    });
    await docker('restart', '--time=1', name);
    await untilHaproxyRuns();
    expect(await docker('exec', name, 'ip', '-o', 'address', 'show', 'dev', 'eth0')).not.toContain(spec.addresses[0]);
    expect(await apply()).toEqual({ status: 'applied' });
    await expectAnswers();
    await docker('rm', '--force', name);
  });
});

describe('the controller’s container, on the network and with the socket', () => {
  let api: ObjectClient;
  const refused: unknown[] = [];

  beforeAll(async () => {
    const { server, ...others } = stack.use(await startLabApiServer({ lab, port: 6443 }, signal));
    ({ api } = others);
    server.access.addUser({ name: 'switchyard-lb', token: 'lab-token', rules: rightsInGuide() });
    server.access.audit(({ user, request, isAllowed }) => {
      if (user === 'switchyard-lb' && !isAllowed) refused.push(request);
    });
    stack.use(await startKindCluster({ lab, engine, network: 'kind' }, signal));
    const addresses = Object.values(lab.nodes[0]!.addresses).map((address) => ({ type: 'InternalIP', address }));
    await api.create(apiResources.nodes, { metadata: { name: 'node1' }, status: { addresses } }, signal);
    // More confined than it has to be.
    const rights = ['--cap-drop=ALL', '--security-opt=no-new-privileges', '--read-only'];
    const socket = ['--volume', `${engine.socket}:/var/run/docker.sock`];
    const options = ['--detach', '--name=switchyard-lb', '--network=kind', ...rights, ...socket];
    await docker('run', ...options, controller.tag, `--image=${loadBalancer.tag}`);
  });

  const web = { namespace: 'default', name: 'web' };

  test('finds the cluster and gives a Service addresses that answer', async () => {
    const ports = [{ name: 'http', protocol: 'TCP' as const, port: 80, nodePort: 30080 }];
    const spec = { type: 'LoadBalancer' as const, ipFamilyPolicy: 'PreferDualStack' as const, ports };
    await api.create(apiResources.services, { metadata: web, spec }, signal);
    const given = async (): Promise<readonly string[]> => {
      const service = await api.get(apiResources.services, web, signal);
      return (service.status?.loadBalancer?.ingress ?? []).map(({ ip }) => ip ?? '');
    };
    await expect.poll(given).toHaveLength(2);
    await using client = await createProber(lab.client, signal);
    for (const address of await given()) {
      await expect
        .poll(() => client.probe({ protocol: 'http', address, port: 80 }))
        .toMatchObject({ status: 'answered', by: 'echo' });
    }
  });

  test('takes less than 120 MB, ends at SIGTERM, and what it made goes on', async () => {
    const [pid = 0] = await engine.pidsOf('switchyard-lb');
    const resident = await residentMegabytes(pid);
    process.stdout.write(`resident in the controller's container: ${resident.toFixed(0)} MB\n`);
    expect(resident).toBeLessThan(120);
    await docker('stop', '--time=20', 'switchyard-lb');
    expect(await docker('inspect', '--format', '{{.State.ExitCode}}', 'switchyard-lb')).toBe('0');
    const left = await docker('ps', '--filter=label=dev.switchyard.lb.service=default/web', '--format', '{{.Status}}');
    expect(left).toMatch(/^Up /);
  });

  test('removes the load balancer of a Service that was deleted while it was away', async () => {
    await api.delete(apiResources.services, web, {}, signal);
    await docker('start', 'switchyard-lb');
    const find = (): Promise<unknown> => api.find(apiResources.services, web, signal);
    await expect.poll(find).toBeUndefined();
    expect(await docker('ps', '--all', '--quiet', '--filter=label=dev.switchyard.lb.cluster=kind')).toBe('');
  });

  test('asks the API server for nothing that the ClusterRole in the guide does not grant', () => {
    expect(refused).toEqual([]);
  });
});

/** The lab's node over both families. */
function targets(port: number): readonly Target[] {
  return (['IPv4', 'IPv6'] as const).flatMap((ipFamily) => nodeTargets(port, { ipFamily }).slice(0, 1));
}

/** Resident memory of a process in MB of 2^20 bytes. */
async function residentMegabytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}
