import { noopLogger, systemClock } from '@switchyard/core';
import { emptyImage, machinePrograms } from '@switchyard/lab';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DiscoveredCluster } from '../../../src/controller/cluster-discovery.ts';
import { createArguments } from '../../../src/docker/container-arguments.ts';
import { KindDiscovery } from '../../../src/docker/discovery.ts';
import { DockerCli } from '../../../src/docker/docker-cli.ts';
import { EngineEvents } from '../../../src/docker/engine-events.ts';
import { type DockerSite, siteSpec, startDockerSite } from './docker-site.ts';

const { signal } = new AbortController();
let site: DockerSite;
let image: string;

beforeAll(async () => {
  site = await startDockerSite('dkdisc', signal);
  image = await emptyImage(site.engine);
});

afterAll(async () => {
  await site?.[Symbol.asyncDispose]();
});

/** A container that looks like one of kind's, and what it publishes its port 6443 on. */
async function startNode(cluster: string, role: string, name = `${cluster}-${role}`): Promise<string> {
  const tags = [`io.x-k8s.kind.cluster=${cluster}`, `io.x-k8s.kind.role=${role}`].flatMap((one) => ['--label', one]);
  const network = ['--network', 'kind', '--publish', '127.0.0.1::6443/tcp'];
  await site.docker(
    'run',
    '--detach',
    '--name',
    name,
    '--hostname',
    name,
    ...network,
    ...tags,
    ...machinePrograms,
    image,
    'sleep',
    '3600',
  );
  return site.docker('port', name, '6443/tcp');
}

/** As kubeadm does it, some time after the container is there. */
async function writeAdminConf(name: string, server: string): Promise<void> {
  const conf = `apiVersion: v1\nclusters:\n- cluster:\n    server: ${server}\n  name: x\n`;
  const script = `mkdir -p /etc/kubernetes && echo '${conf}' >/etc/kubernetes/admin.conf`;
  await site.docker('exec', name, 'sh', '-c', script);
}

interface Watching extends AsyncDisposable {
  readonly seen: (readonly DiscoveredCluster[])[];
}

function watch(ownHostname: string, clusters: readonly string[] = []): Watching {
  const { file: program, env } = site.engine.command;
  const cli = new DockerCli({ program, env });
  const shared = { cli, clock: systemClock, log: noopLogger };
  const events = new EngineEvents({ ...shared, random: Math.random });
  const discovery = new KindDiscovery({ ...shared, events, network: 'kind', clusters, ownHostname });
  const stop = new AbortController();
  const seen: (readonly DiscoveredCluster[])[] = [];
  const running = discovery.watchClusters((all) => void seen.push(all), stop.signal).catch((error: unknown) => error);
  return {
    seen,
    async [Symbol.asyncDispose]() {
      stop.abort(new Error('done'));
      expect(await running).toMatchObject({ message: 'done' });
      await events[Symbol.asyncDispose]();
    },
  };
}

const serversOf = (all: readonly DiscoveredCluster[] | undefined): readonly string[] =>
  (all ?? []).map(({ name, kubeconfig }) => `${name} ${/server: (\S+)/.exec(kubeconfig)?.[1] ?? ''}`);

describe('kind clusters', () => {
  test('are told as they come and go, each with a kubeconfig that reaches it from here', async () => {
    await using watching = watch('this-machine');
    const latest = (): readonly string[] => serversOf(watching.seen.at(-1));
    await expect.poll(() => watching.seen).toEqual([[]]);

    const one = await startNode('one', 'control-plane');
    await writeAdminConf('one-control-plane', 'https://one-control-plane:6443');
    await expect.poll(latest).toEqual([`one https://${one}`]);
    expect(watching.seen.at(-1)?.[0]?.kubeconfig).toContain('tls-server-name: one-control-plane');

    await startNode('two', 'control-plane');
    await startNode('two', 'control-plane', 'two-control-plane2');
    const balancer = await startNode('two', 'external-load-balancer');
    await writeAdminConf('two-control-plane', 'https://two-external-load-balancer:6443');
    await expect.poll(latest).toEqual([`one https://${one}`, `two https://${balancer}`]);

    await site.docker('stop', '--time', '0', 'one-control-plane');
    await site.docker('rm', '--force', 'two-control-plane', 'two-control-plane2', 'two-external-load-balancer');
    await expect.poll(latest).toEqual([`one https://${one}`]);
  });

  test('are reached by their address from a container on the network, and only those that were asked for', async () => {
    await site.docker('start', 'one-control-plane');
    await startNode('three', 'control-plane');
    await writeAdminConf('three-control-plane', 'https://three-control-plane:6443');
    await using watching = watch('one-control-plane', ['three']);
    const format = '{{.NetworkSettings.Networks.kind.IPAddress}}';
    const address = await site.docker('inspect', '--format', format, 'three-control-plane');
    await expect.poll(() => serversOf(watching.seen.at(-1))).toEqual([`three https://${address}:6443`]);
  });

  test('that are deleted take their load balancers along, but not those of others', async () => {
    const list = async (): Promise<readonly string[]> => {
      const names = [
        'ps',
        '--all',
        '--filter',
        'label=dev.switchyard.lb.cluster',
        '--format',
        '{{.Label "dev.switchyard.lb.cluster"}}',
      ];
      return (await site.docker(...names)).split('\n').filter(Boolean).sort();
    };
    const create = async (cluster: string, isDiscovered: boolean): Promise<string> => {
      const { id, addresses } = siteSpec('web', 1);
      const fixed = {
        network: 'kind',
        hasIpv6: true,
        interfaceSettings: 'sysctl',
        publishOn: undefined,
        ports: [],
      } as const;
      const plan = { id: { ...id, cluster }, addresses, image, imageId: '', isDiscovered, ...fixed };
      return site.docker(...createArguments(plan, new Set()), 'sleep', '1');
    };
    await create('one', true);
    await create('three', true);
    await create('elsewhere', false);
    await using _watching = watch('this-machine');
    await site.docker('stop', '--time', '0', 'one-control-plane');
    await site.docker('rm', '--force', 'three-control-plane');
    await expect.poll(list).toEqual(['elsewhere', 'one']);
  });
});
