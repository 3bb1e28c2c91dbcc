import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCommandRunner } from '@switchyard/host';
import { seconds } from '@switchyard/core';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type Cell, clusterPrefix, labCells } from '../../src/cell.ts';
import { expandMatrix, readMatrix } from '../../src/matrix.ts';
import { writeManifests } from '../../src/steps/agent.ts';
import { kindConfig, podSubnets } from '../../src/steps/cluster.ts';
import { checkout } from '../scripted/scripted-machine.ts';

const { cells } = expandMatrix(readMatrix('m', readFileSync(`${checkout}/e2e/matrix.json`, 'utf8')));

test('nx has a target for each cell, made by tools/nx/e2e-targets.ts', { timeout: 60_000 }, async () => {
  const options = { cwd: checkout, timeout: seconds(50), signal: AbortSignal.timeout(50_000) };
  const { stdout } = await createCommandRunner().run('nx', ['show', 'project', 'e2e', '--json'], options);
  const { targets } = JSON.parse(stdout) as NxProject;
  const commands = Object.values(targets).map(({ options }) => options?.command ?? '');
  const ids = [...cells, ...labCells].map(({ id }) => id);
  expect(Object.keys(targets)).toEqual(expect.arrayContaining(ids));
  expect(commands.flatMap((command) => / e2e\/src\/main\.ts (.*)$/.exec(command)?.[1] ?? []).sort()).toEqual(
    ids.sort(),
  );
});

/** The parts of `nx show project --json` that are looked at. */
interface NxProject {
  readonly targets: Readonly<Record<string, { readonly options?: { readonly command?: string } }>>;
}

test("our LoadBalancer controller leaves clusters with the driver's prefix alone", () => {
  const names = readFileSync(`${checkout}/apps/kind-lb-controller/src/docker/container-names.ts`, 'utf8');
  expect(names).toContain(`testClusterPrefix = '${clusterPrefix}'`);
});

/** The parts of rendered objects that are looked at. */
interface Rendered {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  readonly data?: Readonly<Record<string, string>>;
  readonly spec?: {
    readonly template: { readonly spec: { readonly containers: readonly { readonly image: string }[] } };
  };
}

async function render(cell: Cell): Promise<readonly Rendered[]> {
  const folder = await mkdtemp(join(tmpdir(), 'swy-e2e-manifests-'));
  try {
    await writeManifests({ cell, cluster: 'swy-e2e-a', folder, checkout });
    const options = { timeout: seconds(20), signal: AbortSignal.timeout(20_000) };
    const { stdout } = await createCommandRunner().run('kubectl', ['kustomize', join(folder, 'manifests')], options);
    return parseAllDocuments(stdout).map((document) => document.toJS() as Rendered);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

describe('the manifests of a cell', () => {
  test.each(cells.filter(({ id }) => id.endsWith('1.37-switchyard')))('$id', { timeout: 30_000 }, async (cell) => {
    const objects = await render(cell);
    const configMap = objects.find(({ kind }) => kind === 'ConfigMap');
    expect(configMap?.metadata).toMatchObject({ name: 'kube-proxy', namespace: 'kube-system' });
    expect(configMap?.data?.['config.conf']).toContain(`\nmode: ${cell.backend}\n`);
    expect(configMap?.data?.['config.conf']).toContain(`\nclusterCIDR: ${podSubnets[cell.ipFamily]}\n`);
    expect(configMap?.data?.['kubeconfig.conf']).toContain('server: https://swy-e2e-a-control-plane:6443\n');
    const daemonSet = objects.find(({ kind }) => kind === 'DaemonSet');
    expect(daemonSet?.spec?.template.spec.containers[0]?.image).toMatch(
      new RegExp(`^switchyard/agent-${cell.backend}:`),
    );
    expect(objects.map(({ kind }) => kind)).toEqual(expect.arrayContaining(['ServiceAccount', 'ClusterRoleBinding']));
  });
});

test.each(['ipv4', 'ipv6', 'dual'] as const)(
  "kind's configuration for %s has no kube-proxy, three nodes and our ranges",
  (ipFamily) => {
    const [config] = parseAllDocuments(kindConfig(ipFamily)).map((document) => document.toJS() as object);
    expect(config).toMatchObject({
      networking: { kubeProxyMode: 'none', ipFamily, podSubnet: podSubnets[ipFamily] },
      nodes: [{ role: 'control-plane' }, { role: 'worker' }, { role: 'worker' }],
    });
  },
);
