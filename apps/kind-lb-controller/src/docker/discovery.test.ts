import { noopLogger, systemClock } from '@switchyard/core';
import { MemoryLogger } from '@switchyard/core/testing';
import { describe, expect, test } from 'vitest';
import type { DiscoveredCluster } from '../controller/cluster-discovery.ts';
import { type FakeAnswer, FakeEngine } from '../testing/fake-engine.ts';
import { KindDiscovery } from './discovery.ts';
import { DockerCli } from './docker-cli.ts';
import { EngineEvents } from './engine-events.ts';

const labels = { 'io.x-k8s.kind.cluster': 'kind', 'io.x-k8s.kind.role': 'control-plane' };
const settings = { Ports: { '6443/tcp': [{ HostIp: '127.0.0.1', HostPort: '41231' }] }, Networks: {} };
const container = { Id: 'c1', Name: '/kind-control-plane', State: { Status: 'running' }, Config: { Labels: labels } };
const there: readonly FakeAnswer[] = [
  { when: 'container inspect c1', stdout: JSON.stringify([{ ...container, NetworkSettings: settings }]) },
  {
    when: 'network inspect kind',
    stdout: '[{"Name":"kind","IPAM":{"Config":[{"Subnet":"172.18.0.0/16"}]},"Containers":{}}]',
  },
  {
    when: 'exec kind-control-plane cat *',
    stdout: 'clusters:\n- cluster:\n    server: https://kind-control-plane:6443\n',
  },
  { when: 'ps * label=dev.switchyard.lb.discovered=true' },
  { when: 'ps --quiet --filter name=*' },
  { when: 'events *', lasts: 60 },
];
const listed = { when: 'ps * label=io.x-k8s.kind.cluster', stdout: 'c1\n' };
/** A stream that breaks off makes us look again. */
const short = { when: 'events *', lasts: 1, times: 1 };
const down = { stderr: 'Cannot connect to the Docker daemon', exitCode: 1 };

/** Watches until `enough`, or until the watching ends by itself; then what it ended with. */
async function watch(
  program: string,
  enough: (seen: readonly (readonly DiscoveredCluster[])[]) => boolean,
  clusters: readonly string[] = [],
): Promise<unknown> {
  const cli = new DockerCli({ program });
  const shared = { cli, clock: systemClock, log: noopLogger };
  await using events = new EngineEvents({ ...shared, random: () => 0.5 });
  const log = new MemoryLogger();
  const discovery = new KindDiscovery({ ...shared, log, events, network: 'kind', clusters, ownHostname: 'here' });
  const stop = new AbortController();
  const seen: (readonly DiscoveredCluster[])[] = [];
  const onChange = (all: readonly DiscoveredCluster[]): void => {
    seen.push(all);
    if (enough(seen)) stop.abort(new Error('enough'));
  };
  const end = await discovery.watchClusters(onChange, stop.signal).catch((error: unknown) => error);
  return { end: (end as Error).message, names: seen.map((all) => all.map(({ name }) => name)), log: log.transitions };
}

describe('the search for clusters', () => {
  test('waits for an engine that is down', async () => {
    using engine = new FakeEngine([{ ...listed, ...down, times: 1 }, listed, ...there]);
    const found = await watch(engine.program, (seen) => seen.at(-1)?.length === 1);
    expect(found).toEqual({ end: 'enough', names: [['kind']], log: ['warn kind clusters cannot be looked for'] });
  });

  test('waits for a control plane that has no admin.conf yet', async () => {
    const early = { when: 'exec *', stderr: 'cat: /etc/kubernetes/admin.conf: No such file', exitCode: 1, times: 1 };
    using engine = new FakeEngine([listed, early, ...there]);
    const found = await watch(engine.program, (seen) => seen.at(-1)?.length === 1);
    expect(found).toEqual({ end: 'enough', names: [[], ['kind']], log: [] });
  });

  test('finds clusters although the network is missing: their Services must report it', async () => {
    const missing = { when: 'network inspect kind', stderr: 'Error: No such network: kind', exitCode: 1 };
    using engine = new FakeEngine([listed, missing, ...there]);
    const found = await watch(engine.program, (seen) => seen.at(-1)?.length === 1);
    expect(found).toEqual({ end: 'enough', names: [['kind']], log: [] });
  });

  test('leaves alone, and says so once, what is on another network: load balancers could not reach it', async () => {
    const elsewhere = { ...settings, Networks: { other: { IPAddress: '172.20.0.2' } } };
    const inspected = JSON.stringify([{ ...container, NetworkSettings: elsewhere }]);
    const moved = { when: 'container inspect c1', stdout: inspected, times: 1 };
    using engine = new FakeEngine([listed, moved, short, ...there]);
    const found = await watch(engine.program, (seen) => seen.at(-1)?.length === 1);
    expect(found).toEqual({
      end: 'enough',
      names: [[], ['kind']],
      log: ['warn a cluster on another network is left alone'],
    });
  });

  test.each([
    ['leaves the cluster of a test run to the controller of that run, and says so once', [], ['kind']],
    ['serves the cluster of a test run when it is named', ['swy-e2e-a'], ['swy-e2e-a']],
  ] as const)('%s', async (_, wanted, names) => {
    const labelsOf = (cluster: string): object => ({ ...labels, 'io.x-k8s.kind.cluster': cluster });
    const ofTest = {
      ...container,
      Id: 'c0',
      Name: '/swy-e2e-a-control-plane',
      Config: { Labels: labelsOf('swy-e2e-a') },
    };
    const both = [ofTest, container].map((one) => ({ ...one, NetworkSettings: settings }));
    using engine = new FakeEngine([
      { ...listed, stdout: 'c0\nc1\n' },
      { when: 'container inspect c0 c1', stdout: JSON.stringify(both) },
      {
        when: 'exec swy-e2e-a-control-plane cat *',
        stdout: there.find(({ when }) => when.startsWith('exec'))?.stdout ?? '',
      },
      ...there,
    ]);
    const found = await watch(engine.program, (seen) => seen.at(-1)?.length === 1, wanted);
    const log = wanted.length === 0 ? ['info a cluster of a test run is left alone'] : [];
    expect(found).toEqual({ end: 'enough', names: [names], log });
  });

  test('says what it waits for, once', async () => {
    using engine = new FakeEngine([{ ...listed, stdout: '', times: 1 }, listed, short, ...there]);
    const found = await watch(engine.program, (seen) => seen.at(-1)?.length === 1);
    expect(found).toEqual({ end: 'enough', names: [[], ['kind']], log: ['info waiting for a kind cluster'] });
  });

  test('finds the others beside one whose admin.conf cannot be read, and says so once', async () => {
    const labelsOf = (cluster: string): object => ({ ...labels, 'io.x-k8s.kind.cluster': cluster });
    const odd = { ...container, Id: 'c0', Name: '/odd-control-plane', Config: { Labels: labelsOf('a-odd') } };
    const both = [odd, container].map((one) => ({ ...one, NetworkSettings: settings }));
    using engine = new FakeEngine([
      { ...listed, stdout: 'c0\nc1\n' },
      { when: 'container inspect c0 c1', stdout: JSON.stringify(both) },
      { when: 'exec odd-control-plane cat *', stdout: 'clusters: []\n' },
      { when: 'exec kind-control-plane cat *', stderr: 'no such file', exitCode: 1, times: 1 },
      ...there,
    ]);
    const found = await watch(engine.program, (seen) => seen.at(-1)?.length === 1);
    expect(found).toEqual({ end: 'enough', names: [[], ['kind']], log: ['warn a kind cluster cannot be served'] });
  });

  test.each([
    [
      'whose program is missing',
      undefined,
      /there is no such program; install it, or name another one with --container-engine$/,
    ],
    [
      'that does not speak with so old a program',
      'Error response from daemon: client version 1.41 is too old. Minimum supported API version is 1.44',
      /; use a newer program, or set the environment variable DOCKER_API_VERSION/,
    ],
    [
      'that is for others',
      'permission denied while trying to connect to the docker API',
      /; run as a user who may use/,
    ],
  ])('gives up with an engine %s', async (_, stderr, message) => {
    using engine = new FakeEngine(stderr === undefined ? [] : [{ when: '*', stderr, exitCode: 1 }]);
    const program = stderr === undefined ? '/nonexistent/docker' : engine.program;
    expect(await watch(program, () => false)).toMatchObject({ end: expect.stringMatching(message), names: [] });
  });
});
