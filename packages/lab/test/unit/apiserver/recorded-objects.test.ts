import { describe, expect, test } from 'vitest';
import { resourceTable } from '../../../src/apiserver/resources/resource-table.ts';
import { decode } from '../../../src/apiserver/schema.ts';
import { fixture, startHarness, type Wire, withoutNulls } from './harness.ts';

const objects: readonly { readonly title: string; readonly object: Wire }[] = fixture('objects.json').objects.map(
  (object: Wire) => ({
    title: `${object.kind} ${object.metadata.name} at ${object.metadata.resourceVersion}`,
    object,
  }),
);

const resourceOf = (object: Wire): Wire =>
  resourceTable.find(
    (row) =>
      row.kind === object.kind &&
      (row.group === '' ? row.version : `${row.group}/${row.version}`) === object.apiVersion,
  );

describe('objects recorded from kube-apiserver 1.36.2', () => {
  test.each(objects)('$title is known to its last field', ({ object }) => {
    const { value, unknownFields, typeError } = decode(resourceOf(object).schema, object);
    expect({ unknownFields, typeError }).toEqual({ unknownFields: [], typeError: undefined });
    expect(withoutNulls(value)).toEqual(withoutNulls(object));
  });

  test.each(objects)('$title is not changed by a write that changes nothing', async ({ object }) => {
    await using api = await startHarness({ hasLifecycle: false });
    const resource = resourceOf(object);
    const stored = api.server.store.put(resource, decode(resource.schema, object).value);
    const root = resource.group === '' ? '/api/v1' : `/apis/${object.apiVersion}`;
    const scope = resource.isNamespaced ? `/namespaces/${object.metadata.namespace}` : '';
    const path = `${root}${scope}/${resource.plural}/${object.metadata.name}`;
    const reply = await api.patch(path, 'merge', { metadata: {} });
    expect([reply.status, reply.text]).toEqual([200, expect.stringContaining('"kind"')]);
    const metadata = { ...object.metadata, resourceVersion: reply.body.metadata.resourceVersion };
    expect(withoutNulls(reply.body)).toEqual(withoutNulls({ ...object, metadata }));
    expect(Number(reply.body.metadata.resourceVersion)).toBe(stored.resourceVersion);
  });
});
