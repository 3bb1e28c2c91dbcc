import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianRoot } from '../../../../tools/debian/debian-root.ts';
import {
  apiResources,
  createLab,
  createProber,
  type DockerEngine,
  dockerPackages,
  joinDockerNetwork,
  type Lab,
  type LabApiServer,
  startDockerEngine,
  startKindCluster,
  startLabApiServer,
} from '../../src/index.ts';

const signal = AbortSignal.timeout(300_000);
const stack = new AsyncDisposableStack();
let lab: Lab;
let engine: DockerEngine;
let servers: readonly LabApiServer[];

beforeAll(async () => {
  const programs = await debianRoot({ ...dockerPackages, signal });
  lab = stack.use(await createLab({ name: 'kindlike', nodes: 1, ipFamilies: ['IPv4', 'IPv6'] }, signal));
  servers = [
    stack.use(await startLabApiServer({ lab, port: 6443 }, signal)),
    stack.use(await startLabApiServer({ lab, port: 6444 }, signal)),
  ];
  engine = stack.use(await startDockerEngine({ lab, host: lab.loadBalancer, programs }, signal));
  stack.use(await joinDockerNetwork({ lab, host: lab.loadBalancer, engine }, signal));
});

afterAll(() => stack.disposeAsync());

async function docker(...args: readonly string[]): Promise<string> {
  const result = await engine.cli(args);
  expect(result).toMatchObject({ exitCode: 0, stderr: '' });
  return result.stdout.trim();
}

test('two clusters are found by their labels, and each container leads to its own API server', async () => {
  const clusters = [
    stack.use(await startKindCluster({ lab, engine, network: 'kind', server: servers[0]!.server }, signal)),
    stack.use(
      await startKindCluster(
        { lab, engine, network: 'kind', name: 'second', server: servers[1]!.server, port: 6444 },
        signal,
      ),
    ),
  ];
  const filters = ['--filter', 'label=io.x-k8s.kind.cluster', '--filter', 'label=io.x-k8s.kind.role=control-plane'];
  const found = await docker('ps', ...filters, '--format', '{{.Names}} {{.Label "io.x-k8s.kind.cluster"}}');
  expect(found.split('\n').sort()).toEqual(['kind-control-plane kind', 'second-control-plane second']);
  await using onHost = await createProber(lab.loadBalancer, signal);
  for (const [index, { controlPlane, name, addresses, publishedPort }] of clusters.entries()) {
    expect(await docker('exec', controlPlane, 'cat', '/etc/kubernetes/admin.conf')).toContain(
      `http://${controlPlane}:6443`,
    );
    await servers[index]!.api.create(apiResources.namespaces, { metadata: { name: `of-${name}` } }, signal);
    const places = [
      { address: '127.0.0.1', port: publishedPort },
      ...addresses.map((address) => ({ address, port: 6443 })),
    ];
    expect(places).toHaveLength(3);
    for (const place of places) {
      const probe = { protocol: 'http', ...place, path: `/api/v1/namespaces/of-${name}` } as const;
      await expect
        .poll(() => onHost.probe(probe), { timeout: 10_000 })
        .toMatchObject({ status: 'answered', httpStatus: 200 });
    }
  }
});
