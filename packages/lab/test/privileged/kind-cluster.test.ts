import { writeFile } from 'node:fs/promises';
import { apiResources } from '@switchyard/core/kubernetes';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { debianRoot } from '../../../../tools/debian/debian-root.ts';
import {
  createLab,
  type DockerEngine,
  dockerPackages,
  joinDockerNetwork,
  type Lab,
  type LabApiServer,
  type LabCommandResult,
  startDockerEngine,
  startKindCluster,
  startLabApiServer,
} from '../../src/index.ts';

const { signal } = new AbortController();
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
    stack.use(await startKindCluster({ lab, engine, network: 'kind' }, signal)),
    stack.use(await startKindCluster({ lab, engine, network: 'kind', name: 'second', port: 6444 }, signal)),
  ];
  const filters = ['--filter', 'label=io.x-k8s.kind.cluster', '--filter', 'label=io.x-k8s.kind.role=control-plane'];
  const found = await docker('ps', ...filters, '--format', '{{.Names}} {{.Label "io.x-k8s.kind.cluster"}}');
  expect(found.split('\n').sort()).toEqual(['kind-control-plane kind', 'second-control-plane second']);
  for (const [index, { controlPlane, name, addresses, publishedPort }] of clusters.entries()) {
    const adminConf = await docker('exec', controlPlane, 'cat', '/etc/kubernetes/admin.conf');
    expect(adminConf).toContain(`    server: https://${controlPlane}:6443\n`);
    const authority = `${lab.folder}/${name}.crt`;
    const [, data = ''] = /certificate-authority-data: (\S+)/.exec(adminConf) ?? [];
    await writeFile(authority, Buffer.from(data, 'base64'));
    await servers[index]!.api.create(apiResources.namespaces, { metadata: { name: `of-${name}` } }, signal);
    const places = [
      `127.0.0.1:${publishedPort}`,
      ...addresses.map((address) => (address.includes(':') ? `[${address}]:6443` : `${address}:6443`)),
    ];
    expect(places).toHaveLength(3);
    for (const place of places) {
      const url = `https://${controlPlane}:6443/api/v1/namespaces/of-${name}`;
      const ask = ['--silent', '--show-error', '--fail', '--cacert', authority, '--connect-to', `::${place}`, url];
      const answer = (): Promise<LabCommandResult> => lab.loadBalancer.run('curl', ask);
      await expect.poll(answer).toMatchObject({ exitCode: 0 });
    }
  }
});
