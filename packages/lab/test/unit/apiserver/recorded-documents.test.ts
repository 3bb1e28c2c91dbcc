import { describe, expect, test } from 'vitest';
import { fixture, startHarness, type Wire } from './harness.ts';

interface Discovery {
  readonly aggregated: readonly { readonly group: string; readonly entry: Wire }[];
  readonly legacy: Readonly<Record<string, Wire>>;
}

interface RecordedTable {
  readonly plural: string;
  readonly columns: readonly (readonly [name: string, type: string, format: string, priority: number])[];
}

const { aggregated, legacy }: Discovery = fixture('discovery.json');
const tables: readonly RecordedTable[] = fixture('tables.json').tables;
const aggregatedAccept =
  'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,' +
  'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json';

describe('discovery recorded from kube-apiserver 1.36.2', () => {
  test.each(aggregated)('the aggregated entry of $entry.resource in group "$group"', async ({ group, entry }) => {
    await using api = await startHarness();
    const reply = await api.get(group === '' ? '/api' : '/apis', { accept: aggregatedAccept });
    const found = reply.body.items.find((item: Wire) => (item.metadata.name ?? '') === group);
    const mine = found.versions[0].resources.find((row: Wire) => row.resource === entry.resource);
    expect(mine).toEqual(entry);
  });

  test.each(Object.keys(legacy))('the legacy list %s', async (path) => {
    await using api = await startHarness();
    const { body } = await api.get(path);
    const byName = (a: Wire, b: Wire): number => (a.name < b.name ? -1 : 1);
    expect({ ...body, resources: body.resources.toSorted(byName) }).toEqual({
      ...legacy[path],
      resources: legacy[path].resources.toSorted(byName),
    });
  });
});

describe('Table columns recorded from kube-apiserver 1.36.2', () => {
  test.each(tables)('of $plural', async ({ plural, columns }) => {
    await using api = await startHarness();
    const paths: Record<string, string> = {
      deployments: '/apis/apps/v1/deployments',
      replicasets: '/apis/apps/v1/replicasets',
      endpointslices: '/apis/discovery.k8s.io/v1/endpointslices',
    };
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json';
    const { body } = await api.get(paths[plural] ?? `/api/v1/${plural}`, { accept });
    expect(body.kind).toBe('Table');
    expect(body.columnDefinitions.map((c: Wire) => [c.name, c.type, c.format, c.priority])).toEqual(columns);
  });
});
